"""Compiled batches of the solvers' hot loops; the drivers are in ``tausvm.solvers``."""
