"""Newton steps on the entries of α that are free, from a nearly optimal point to rounding.

Rows at zero and entries at their bounds are held. On the others the dual is smooth, and its
equations with the offsets are

    yᵢⱼ − f(xᵢ)ⱼ − bⱼ − ε αᵢⱼ/‖αᵢ‖ − ridge·αᵢⱼ = 0,     Σᵢ αᵢ = 0.

With the right entries held a few steps solve them as exactly as they can be; where the entries
held are not the right ones, bounds are crossed or the gap grows, and the caller keeps what it
had.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, LinAlgWarning, lstsq, solve

from .problem import JointProblem

Array = NDArray[np.float64]

STEPS = 8
#: free entries up to which the equations are written out
FREE = 400


def polished(problem: JointProblem, alpha: Array, b: Array) -> tuple[Array, Array] | None:
    """α and b after Newton steps on the free entries; None where that is not to be had."""
    outputs = problem.terms.outputs
    nonzero = np.any(alpha, axis=1, keepdims=True)
    free = (alpha > outputs.lower) & (alpha < outputs.upper) & nonzero
    i, j = np.nonzero(free)
    if not 0 < len(i) <= FREE:
        return None
    p = alpha.shape[1]
    used = np.unique(j) if problem.offset else np.zeros(0, dtype=np.int64)
    border = (j[:, None] == used).astype(np.float64)
    entries = problem.gram.entries(i, j)
    alpha, b = alpha.copy(), b.copy()
    error = np.inf
    for _ in range(STEPS):
        residual, bend = _equations(problem, alpha, b, i, j)
        missing = -alpha.sum(axis=0)[used] if problem.offset else np.zeros(0)
        size = max(float(np.abs(residual).max()), float(np.abs(missing).max(initial=0.0)))
        if not size < 0.5 * error:
            break
        error = size
        corner = np.zeros((len(used), len(used)))
        matrix = np.block([[entries + bend, border], [border.T, corner]])
        step = _solved(matrix, np.concatenate([residual, missing]))
        if step is None:
            return None
        alpha[i, j] += step[: len(i)]
        b[used] += step[len(i) :]
    within = (alpha >= outputs.lower) & (alpha <= outputs.upper)
    return (alpha, b[:p]) if bool(np.all(within)) else None


def _equations(
    problem: JointProblem, alpha: Array, b: Array, i: NDArray[np.intp], j: NDArray[np.intp]
) -> tuple[Array, Array]:
    """What the equations of the free entries lack, and the curvature of their terms."""
    epsilon, outputs = problem.terms.epsilon, problem.terms.outputs
    lengths = np.sqrt(np.einsum("ij,ij->i", alpha, alpha))
    unit = alpha / np.where(lengths > 0, lengths, 1.0)[:, None]
    ridge = outputs.ridge(alpha)
    slope = problem.y - problem.gram.product(alpha) - b - epsilon * unit - ridge * alpha
    u = unit[i, j]
    same_row = i[:, None] == i
    bend = np.where(same_row, -np.outer(u, u), 0.0)
    bend[np.diag_indices(len(i))] += 1.0
    bend *= (epsilon / lengths[i])[:, None]
    bend[np.diag_indices(len(i))] += ridge[i, j]
    return slope[i, j], bend


def _solved(matrix: Array, right: Array) -> Array | None:
    """A solution, of least length where copies of a point make it one of many."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", LinAlgWarning)
            step: Array = solve(matrix, right, assume_a="sym", check_finite=False)
    except (LinAlgError, LinAlgWarning):
        step = lstsq(matrix, right, cond=1e-14, check_finite=False)[0]
    return step if np.isfinite(step).all() else None
