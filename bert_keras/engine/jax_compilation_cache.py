"""Keeps the programs that JAX compiles in files, so that the next run starts at once.

Why: JAX keeps no compiled programs unless a folder is set, and compiles a step for each length of
a batch, which takes about three seconds for MiniLM (docs/benchmarks.md).

Remove when `test_jax_keeps_no_compiled_programs_by_itself` fails.
"""

import contextlib
import importlib.util
import os

import keras

# Whether each shape of a batch is a program of its own. PyTorch compiles nothing.
COMPILES_SHAPES = keras.backend.backend() != "torch"
# Seconds; a program that compiles faster is not worth a file.
WORTH_KEEPING = 0.5
# Bytes; above that, the least recently used programs are deleted.
AT_MOST = 4 << 30


def keep_compiled_programs(least_seconds=WORTH_KEEPING):
    """Makes JAX keep compiled programs in ~/.cache/bert_keras/jax, unless the user chose a folder.

    Models call it before their first step. The environment variable `JAX_COMPILATION_CACHE_DIR`, or
    `jax.config`, names another folder, and `JAX_ENABLE_COMPILATION_CACHE=false` keeps nothing. On
    the other backends it does nothing.

    Args:
        least_seconds: float, a program that compiles faster is not kept.
    """
    if keras.backend.backend() != "jax":
        return
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    if jax.config.jax_compilation_cache_dir is not None:
        return
    folder = os.path.join(os.path.expanduser("~"), ".cache", "bert_keras", "jax")
    if os.path.isabs(folder):  # Otherwise there is no home folder.
        with contextlib.suppress(OSError):
            os.makedirs(folder, exist_ok=True)
    if not os.access(folder, os.W_OK):
        return  # Everything is compiled again.
    jax.config.update("jax_compilation_cache_dir", folder)
    if importlib.util.find_spec("filelock"):  # JAX needs it to limit the size.
        jax.config.update("jax_compilation_cache_max_size", AT_MOST)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", least_seconds)
    # If something was compiled before, JAX has noted that there is no folder.
    compilation_cache.reset_cache()
