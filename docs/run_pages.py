"""Runs pages of code into the cache of results, one page on each processor.

Sphinx runs pages one after the other. It takes the results from the cache, since both read a page with
`percent_pages.read`.
"""

import os
import pathlib
import re
import sys
import time
from concurrent import futures

import percent_pages
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from warm_kernels import WarmKernelManager

TIMEOUT = 3600  # Seconds, for one cell.
# The pages that take more than a minute. They start first, so that all processors end together.
SLOW = (
    "question_answering",
    "fine_tuning_playbook",
    "train_a_reranker",
    "semantic_search",
    "pretraining_on_your_domain",
    "text_embedding",
    "custom_head",
    "long_text_classification",
    "bert",
    "token_classification",
    "custom_training_loop",
    "multiple_choice",
    "elmo",
    "gpt",
    "five_lines",
)


def without_results(paths, cache):
    """Returns {hash: path} of the pages that the cache lacks, in the order in which they start.

    Pages whose code is equal, such as a tutorial in two languages, share one hash and one run.
    """
    pages, order = {}, {name: place for place, name in enumerate(SLOW)}
    for path in sorted(paths, key=lambda path: order.get(path.stem, len(SLOW))):
        notebook = percent_pages.read(path.read_text(encoding="utf-8"))
        try:
            cache.match_cache_notebook(notebook)
        except KeyError:
            pages.setdefault(cache.create_hashed_notebook(notebook)[1], path)
    return pages


def environment(text, hidden):
    """Returns the environment of a page, with the folder `hidden` first on the path of imports.

    Where TensorFlow is installed, `keras.utils.set_random_seed` and `load_model` import it on every
    backend, which takes five seconds. It stays visible to pages that need it themselves.
    """
    own_backend = re.search(r'os\.environ\["KERAS_BACKEND"\] = "(\w+)"', text)
    backend = own_backend[1] if own_backend else os.environ["KERAS_BACKEND"]
    needs_tensorflow = re.search(r"\b(import|from)\b.*\b(tensorflow|keras_hub)\b", text)
    paths = (None if needs_tensorflow else str(hidden), os.environ.get("PYTHONPATH"))
    paths = os.pathsep.join(filter(None, paths))
    return {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": paths}


def run(path, hidden):
    """Runs one page in a kernel of its own; returns the notebook and its seconds."""
    text = path.read_text(encoding="utf-8")
    notebook = percent_pages.read(text)
    # Times in the cells would change the hash by which Sphinx finds the page in the cache.
    manager = WarmKernelManager if sys.platform == "linux" else AsyncKernelManager
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
        kernel_manager_class=manager,
    )
    started = time.monotonic()
    client.execute(env=environment(text, hidden))
    return notebook, time.monotonic() - started


def run_pages(paths, folder, num_processors=None):
    """Runs the pages that the cache in `folder` lacks.

    Returns:
        A list of messages, one for each page that failed.
    """
    cache = get_cache(folder)
    pages = without_results(paths, cache).values()
    hidden, failures = pathlib.Path(folder) / "hidden", []
    hidden.mkdir(parents=True, exist_ok=True)
    (hidden / "tensorflow.py").write_text('raise ImportError("No page on PyTorch needs it.")\n')
    try:
        with futures.ThreadPoolExecutor(num_processors or os.cpu_count()) as executor:
            running = {executor.submit(run, path, hidden): path for path in pages}
            for future in futures.as_completed(running):
                path = running[future]
                try:
                    notebook, seconds = future.result()
                except (CellExecutionError, CellTimeoutError) as error:
                    print(f"{path.parent.name}/{path.name}: failed", flush=True)
                    failures.append(f"{path}:\n{error}")
                    continue
                print(f"{path.parent.name}/{path.name}: {seconds:.0f} s", flush=True)
                bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": seconds})
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    finally:
        WarmKernelManager.close_servers()
    return failures
