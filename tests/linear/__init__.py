"""Linear machines: solvers, estimators, selection."""
