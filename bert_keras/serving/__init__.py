"""Serves models over HTTP: answers in batches, in the protocols of common clients."""
