"""Corrections of Keras and its backends.

Each file says why it exists, and names the test that fails when it can go. Such a test shows the
defect without this package; where no path is named, it is in tests/engine/test_still_needed.py.
"""
