"""Fits that begin where the last one ended."""

from __future__ import annotations

from typing import Any

from ..solvers import SolverResult


def last_results(machine: Any, n: int, n_levels: int) -> list[SolverResult] | None:
    """The results of a machine's last fit, if a fit of so many rows and levels may begin there."""
    if not machine.warm_start or not hasattr(machine, "result_"):
        return None
    last = machine.result_ if isinstance(machine.result_, list) else [machine.result_]
    fits = len(last) == n_levels and all(len(result.beta) == n for result in last)
    return last if fits else None
