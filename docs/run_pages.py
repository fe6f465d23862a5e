"""Runs pages of code into the cache of results, one page on each processor.

Sphinx runs pages one after the other. It takes the results from the cache, since both read a page with
`percent_pages.read`.
"""

import os
from concurrent import futures

import percent_pages
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution

TIMEOUT = 3600  # Seconds, for one cell.


def without_results(paths, cache):
    """Returns {hash: path} of the pages that the cache lacks, the longest first.

    Pages whose code is equal, such as a tutorial in two languages, share one hash and one run.
    """
    pages = {}
    for path in sorted(paths, key=lambda path: -path.stat().st_size):
        notebook = percent_pages.read(path.read_text(encoding="utf-8"))
        try:
            cache.match_cache_notebook(notebook)
        except KeyError:
            pages.setdefault(cache.create_hashed_notebook(notebook)[1], path)
    return pages


def run(path):
    """Runs one page in a kernel of its own."""
    notebook = percent_pages.read(path.read_text(encoding="utf-8"))
    return single_nb_execution(notebook, cwd=str(path.parent), timeout=TIMEOUT, allow_errors=False)


def run_pages(paths, folder, num_processors=None):
    """Runs the pages that the cache in `folder` lacks.

    Returns:
        A list of messages, one for each page that failed.
    """
    cache = get_cache(folder)
    pages = without_results(paths, cache).values()
    failures = []
    with futures.ThreadPoolExecutor(num_processors or os.cpu_count()) as executor:
        running = {executor.submit(run, path): path for path in pages}
        for future in futures.as_completed(running):
            path, result = running[future], future.result()
            print(f"{path.parent.name}/{path.name}: {result.time:.0f} s", flush=True)
            if result.err:
                failures.append(f"{path}:\n{result.exc_string}")
                continue
            bundle = CacheBundleIn(result.nb, str(path), data={"execution_seconds": result.time})
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    return failures
