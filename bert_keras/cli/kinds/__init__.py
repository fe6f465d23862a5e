"""The kinds of examples that `train` and `evaluate` know, one a file.

What a task is called, how it answers and what its labels mean follow from the task's class. A kind
adds what only files and runs need: how they are read, measured and shown.
"""
