"""Corrections and faster kernels for Keras and its backends. Code that depends on one is here.

Each file says why it exists, and names the test that fails once the file is no longer needed. Such
a test shows the defect without this package. Where no path is named, the test is in
tests/engine/test_still_needed.py.
"""
