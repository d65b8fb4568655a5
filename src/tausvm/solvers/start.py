"""Warm starts: from the solution of a problem on the same data, with another C, τ or ε."""

from __future__ import annotations

import numpy as np

from .problem import Point, Problem
from .result import SolverResult


def warm_start(problem: Problem, old: SolverResult) -> Point:
    """A feasible β near the old one, and its Kβ: the old values corrected where β was cut."""
    units, operator = problem.units, problem.operator
    before, fitted = units.into(old.beta), units.values_into(old.fitted)
    beta = problem.feasible(before)
    if problem.grouped:
        return Point.of(beta, units.offset_into(old.intercept))
    moved = beta - before
    changed = np.flatnonzero(moved)
    if len(changed) > problem.n // 2:
        return Point.of(beta, fitted=operator.product(beta))
    operator.add_rows(changed, moved[changed], fitted)
    return Point.of(beta, fitted=fitted)


def coefficients_only(problem: Problem, old: SolverResult) -> Point:
    """A feasible β near the old one, whose values are computed afresh: K may be another one."""
    return Point.of(problem.feasible(problem.units.into(old.beta)))
