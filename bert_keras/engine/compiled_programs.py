"""Programs that JAX has compiled are kept in files, so that the next run starts at once."""

import importlib.util
import os

import keras

# Seconds; a program compiled in less is not worth a file.
WORTH_KEEPING = 0.5
# Bytes; those that were not used for longest are deleted beyond.
AT_MOST = 4 << 30


def keep_compiled_programs():
    """Has JAX keep what it compiles in ~/.cache/bert_keras/jax, unless the user has said where.

    Models call it before their first step. The environment variable `JAX_COMPILATION_CACHE_DIR`, or
    `jax.config`, names another folder, and `JAX_ENABLE_COMPILATION_CACHE=false` keeps nothing. On
    the other backends it does nothing.
    """
    if keras.backend.backend() != "jax":
        return
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    if jax.config.jax_compilation_cache_dir is not None:
        return
    folder = os.path.join(os.path.expanduser("~"), ".cache", "bert_keras", "jax")
    try:
        if os.path.isabs(folder):  # Else there is no home.
            os.makedirs(folder, exist_ok=True)
    except OSError:
        pass
    if not os.access(folder, os.W_OK):
        return  # Everything is compiled anew.
    jax.config.update("jax_compilation_cache_dir", folder)
    if importlib.util.find_spec("filelock"):  # JAX counts and deletes by it.
        jax.config.update("jax_compilation_cache_max_size", AT_MOST)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)
    # What was compiled before has had JAX note that there is no folder.
    compilation_cache.reset_cache()
