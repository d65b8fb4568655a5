"""Slow, plain solvers that share no code with tausvm: what its answers are held against."""
