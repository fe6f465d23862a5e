"""Corrections and faster kernels for Keras and its backends. Code that depends on one is here.

Each file says why it exists, and names the test that fails when it can go. Such a test shows the
defect without this package; where no path is named, it is in tests/engine/test_still_needed.py.
"""
