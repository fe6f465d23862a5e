"""All tests, each job in a process of its own, two at a time: `make test`.

All extras are installed there, so a test that skips itself fails, see conftest.py.

1. the unit tests on each backend;
2. `.keras` files between the backends, in all nine directions;
3. the quickstart for a few steps, on each backend: on JAX and PyTorch from the built wheel, outside
   the source tree, where TensorFlow cannot be imported;
4. the tests of rounding on each backend, as on an older processor, and with JAX and TensorFlow
   those of several devices.
"""

import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent import futures

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The model of the quickstart on each backend: where it is compiled, a smaller one of the wheel.
PRESETS = dict.fromkeys(("torch", "jax", "tensorflow"), "bert_mini_en_gutenberg")
PRESETS["torch"] = "minilm_l6_en_uncased"
# Independent of the backend, so they run once. Readers of checkpoints return arrays, which
# test_families.py assigns on each backend.
ONCE = [
    "tests/fuzz/test_fuzz.py",  # First: it forks this process unless a test imported TensorFlow.
    "tests/answers",
    "tests/corpora",
    "tests/datasets",
    "tests/engine/test_interrupts.py",
    "tests/export/test_tokenizer_in_graph.py",
    "tests/tokenizers",
    "tests/preprocessing",
    "tests/metrics",
    "tests/presets/test_checkpoints.py",
    "tests/presets/test_foreign_checkpoints.py",
    "tests/presets/test_left_out.py",
    "tests/presets/test_peft.py",
    "tests/presets/test_tf1_names.py",
    "tests/presets/test_torch_pickle.py",
    "tests/presets/test_keras_hub.py",
    "tests/presets/test_resolve.py",
    "tests/presets/test_tf1.py",
    "tests/presets/test_safetensors_io.py",
    "tests/presets/test_tf_checkpoint.py",
    "tests/serving",
    "tests/tasks/test_lora_files.py",
    "tests/tasks/test_question_examples.py",
    "tests/tasks/test_tagging_words.py",
    "tests/test_checks.py",
    "tests/test_imports.py",
    "tests/test_typing.py",
]
# The files among these that compute on a backend.
ON_EACH = ("tests/answers/test_viterbi.py", "tests/metrics/test_streaming.py")

# Tests compile hundreds of tiny models, so compilation must be fast, not the program.
QUICK_COMPILATION = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
# A processor without AVX-512 and bfloat16 instructions has other kernels, which round differently.
# TensorFlow reads from the processor whether oneDNN can multiply bfloat16, not from oneDNN's limit,
# and crashes where a lower limit forbids it: so it does without oneDNN. PyTorch's oneDNN may use
# AVX-512, where it multiplies bfloat16 without instructions for it.
AVX2 = {
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "ONEDNN_MAX_CPU_ISA": "AVX512_CORE",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
    "XLA_FLAGS": f"{QUICK_COMPILATION['XLA_FLAGS']} --xla_cpu_max_isa=AVX2",
}
COMPUTED_AGAIN = (
    "tests/models/test_albert.py::test_gradients_of_blocks_computed_again_equal_transformers"
)
ROUNDING = ["tests/engine/test_kernels.py", COMPUTED_AGAIN]
# Runs before anything else starts JAX or TensorFlow, which then have several devices.
SEVERAL_DEVICES = "tests/test_distribution.py"
# Tests write and delete thousands of files, which takes minutes on some disks. The folder in memory
# that Linux has is used where it has room: in a container it often has 64 MB.
IN_MEMORY = pathlib.Path("/dev/shm")
if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > 4 * 2**30:
    tempfile.tempdir = os.environ["TMPDIR"] = str(IN_MEMORY)
# Parallel jobs with a thread for each core would mostly wait for one another. NPROC is XLA's.
COUNTS_OF_THREADS = ("OMP_NUM", "OPENBLAS_NUM", "TF_NUM_INTRAOP", "TF_NUM_INTEROP")
ONE_THREAD = {"NPROC": "1"} | {f"{name}_THREADS": "1" for name in COUNTS_OF_THREADS}
# Of all jobs. pip has compiled nothing, see the Makefile, so that Python writes what it compiles.
SETTINGS = {"TF_CPP_MIN_LOG_LEVEL": "3", "HF_HUB_OFFLINE": "1", "FAIL_ON_SKIPS": "1"}
SETTINGS["PYTHONDONTWRITEBYTECODE"] = ""


def run(title, command, backend="jax", cwd=ROOT, **environment):
    """Runs a command, prints its output when it has ended, and returns whether it passed."""
    started = time.time()
    settings = SETTINGS | ONE_THREAD | QUICK_COMPILATION | {"KERAS_BACKEND": backend}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "errors": "replace"}
    environment = {**os.environ, **settings, **environment}
    done = subprocess.run(command, cwd=cwd, env=environment, check=False, text=True, **streams)
    outcome = "passed" if done.returncode == 0 else "FAILED"
    output = done.stdout if done.returncode else done.stdout[-1500:]
    print(f"{output}\n== {title}: {outcome}, {time.time() - started:.0f} s\n", flush=True)
    return done.returncode == 0


def tests_of_backends(backend):
    """Returns the test files that run on a backend, without those of `ONCE`."""
    paths = sorted(ROOT.glob("tests/**/test_*.py"))
    if backend != "torch":  # To import a file takes time, even if none of its tests runs.
        paths = [path for path in paths if not runs_once(path.read_text())]
    files = [path.relative_to(ROOT).as_posix() for path in paths]
    once = (*ONCE, "tests/across_backends", *([] if backend == "torch" else [SEVERAL_DEVICES]))
    on_each = () if backend == "torch" else ON_EACH
    return [name for name in files if name in on_each or not name.startswith(once)]


def runs_once(source):
    """Whether all tests in a file are marked `once`, see conftest.py."""
    is_marked = "\npytestmark = pytest.mark.once\n" in source
    return is_marked and not re.search("each_backend|also_on", source)


def quickstart(output_dir, backend):
    """Returns the arguments of the quickstart, `train` for a few steps."""
    data = str(ROOT / "examples" / "data" / "sentiment_labelled_sentences")
    flags = {"data_dir": data, "sample": 64, "epochs": 1, "max_length": 8}
    flags |= {"preset": PRESETS[backend], "output_dir": output_dir}
    # To draw takes seconds, so one draws: PyTorch's, where TensorFlow cannot be imported.
    flags["pictures"] = backend == "torch"
    return ["train", "text_classification", *(f"--{name}={x}" for name, x in flags.items())]


def wheel_job(folder):
    """Installs the wheel into a folder and trains from there, without source and TensorFlow."""
    target = str(pathlib.Path(folder) / "site")
    # `make` has built it in an environment of its own, with the packages that it asks for.
    options = ["--no-deps", "--no-build-isolation", "--no-compile", "--target", target]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, str(ROOT / "tests" / "small_run.py"), target]
    titles = {backend: f"quickstart from the wheel on {backend}" for backend in ("jax", "torch")}
    return run("install the wheel", [*pip, "install", *options, str(ROOT)]) and all(
        run(title, [*command, *quickstart(backend, backend)], backend, folder, PYTHONPATH=target)
        for backend, title in titles.items()
    )


# The settings of tests/margins.py.
MARGINS = [{"SHIFT_SEEDS": shift} for shift in ("7", "13", "101")] + [{"DIVIDE_TOLERANCES": "4"}]


def main(arguments):
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--durations=12"]
    started = time.time()
    with tempfile.TemporaryDirectory() as folder, futures.ThreadPoolExecutor(2) as two_at_a_time:
        QUICK_COMPILATION["JAX_COMPILATION_CACHE_DIR"] = f"{folder}/jax"
        jobs = []

        def add(function, *arguments, **options):
            jobs.append(two_at_a_time.submit(function, *arguments, **options))

        if arguments == ["--margins"]:
            plugin = [*pytest, "-p", "margins"]
            for backend, settings in itertools.product(("torch", "jax", "tensorflow"), MARGINS):
                title = " ".join(f"{name}={value}" for name, value in settings.items())
                path = str(ROOT / "tests")
                groups = [tests_of_backends(backend)]
                groups.append(ONCE if backend == "torch" else [SEVERAL_DEVICES, *ROUNDING])
                for files in groups:
                    command = [*plugin, *files]
                    add(run, f"{backend}, {title}", command, backend, PYTHONPATH=path, **settings)
            return finish(jobs, started)
        # The longest jobs start first, so that two run until the end.
        for backend in ("torch", "jax", "tensorflow"):
            command = [*pytest, *tests_of_backends(backend)]
            if backend != "torch":  # Seconds to compile, and the job of rounding has it.
                command.append(f"--deselect={COMPUTED_AGAIN}")
            # To write a program takes longer than to compile it.
            add(run, f"tests on {backend}", command, backend, JAX_ENABLE_COMPILATION_CACHE="0")
        # On PyTorch, where tests marked `once` run. They do not depend on the processor.
        once = [*pytest, *ONCE, *ROUNDING]
        add(run, "tests that need no backend, and of rounding", once, "torch", **AVX2)
        # Its workers import a backend each, its own process none.
        across = [*pytest, "--noconftest", "tests/across_backends"]
        add(run, "files between backends", across)
        add(wheel_job, f"{folder}/wheel")
        command = [sys.executable, "-m", "bert_keras"]
        command += quickstart(f"{folder}/quickstart", "tensorflow")
        add(run, "quickstart on tensorflow", command, "tensorflow", PYTHONPATH=str(ROOT))
        for backend in ("tensorflow", "jax"):
            title = f"several devices, and AVX2 only, on {backend}"
            add(run, title, [*pytest, SEVERAL_DEVICES, *ROUNDING], backend, **AVX2)
        return finish(jobs, started)


def finish(jobs, started):
    """Waits for jobs, prints how many passed, and returns the exit status."""
    passed = [job.result() for job in jobs]
    print(f"{time.time() - started:.0f} s")
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
