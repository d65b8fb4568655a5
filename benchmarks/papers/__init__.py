"""The experiments of the five papers, one file a paper: ``python -m benchmarks.papers``."""
