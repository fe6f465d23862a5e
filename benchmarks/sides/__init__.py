"""The sides of the benchmarks: one file a library, one function a kind of job.

A function takes the job, a dict, and returns a function that does it once and returns its answer,
float32, or `None` where there is nothing to compare.
"""
