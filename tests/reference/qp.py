"""Both problems as quadratic programs for clarabel.

Each program gives β and b, one of them as multipliers, and so a bound from either side: the
primal objective there, and the dual objective.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import clarabel
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .objective import SideCosts, dual_objective, primal_objective

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Optimum:
    """β and b of a program, and the two objectives at them, evaluated in NumPy."""

    beta: Array
    b: float
    lower: float
    upper: float


def reference_optimum(K: Array, y: Array, costs: SideCosts, offset: bool) -> Optimum:
    """The optimum to eight digits by the best bounds of both programs, or an error."""
    zero = np.zeros(len(y))
    constants = [0.0, *y] if offset else [0.0]
    best = min(
        (Optimum(zero, b, 0.0, primal_objective(K, y, costs, zero, b)) for b in constants),
        key=lambda trivial: trivial.upper,
    )
    floor = 1e-6 * natural_size(y, costs)
    for settings in _settings():
        for program in (dual_qp, primal_qp):
            found = program(K, y, costs, offset, settings)
            if found is None:
                continue
            lower = max(best.lower, found.lower)
            nearer = found if found.upper < best.upper else best
            best = Optimum(nearer.beta, nearer.b, lower, nearer.upper)
            if best.upper - best.lower <= 1e-8 * max(best.upper, floor):
                return best
    raise ArithmeticError(f"clarabel came no nearer than {best.lower} and {best.upper}")


def natural_size(y: Array, costs: SideCosts) -> float:
    """The loss of residuals as large as y: what zero is compared with."""
    size = float(np.abs(y).max()) + costs.epsilon
    return float((costs.rise + costs.fall).sum()) * size**costs.power


def dual_qp(
    K: Array, y: Array, costs: SideCosts, offset: bool, settings: clarabel.DefaultSettings
) -> Optimum | None:
    """The dual with β = p − m, p and m ≥ 0, sides without cost left out."""
    plus, minus = np.flatnonzero(costs.rise > 0), np.flatnonzero(costs.fall > 0)
    index = np.concatenate([plus, minus])
    sign = np.concatenate([np.ones(len(plus)), -np.ones(len(minus))])
    ends = np.concatenate([costs.rise[plus], costs.fall[minus]])
    size = len(index)
    hessian = sign[:, None] * sign * K[np.ix_(index, index)]
    linear = costs.epsilon - sign * y[index]
    identity = sp.identity(size, format="csc")
    rows, right = [-identity], [np.zeros(size)]
    if costs.power == 2:
        hessian[np.diag_indices(size)] += 0.5 / ends
    else:
        rows.append(identity)
        right.append(ends)
    cones = [clarabel.NonnegativeConeT(size * len(rows))]
    if offset:
        rows.insert(0, sp.csc_matrix(sign[None, :]))
        right.insert(0, np.zeros(1))
        cones.insert(0, clarabel.ZeroConeT(1))
    A = sp.vstack(rows, format="csc")
    solution = _solve(hessian, linear, A, np.concatenate(right), cones, settings)
    if solution is None:
        return None
    x, z = solution
    x = np.clip(x, 0.0, ends if costs.power == 1 else np.inf)
    beta = np.bincount(index, weights=sign * x, minlength=len(y))
    beta = _balanced(beta) if offset else beta
    b = float(z[0]) if offset else 0.0
    return Optimum(
        beta, b, dual_objective(K, y, costs, beta), primal_objective(K, y, costs, beta, b)
    )


def primal_qp(
    K: Array, y: Array, costs: SideCosts, offset: bool, settings: clarabel.DefaultSettings
) -> Optimum | None:
    """The primal with f = Lw, K = LLᵀ, and a slack for each side; β are its multipliers."""
    n = len(y)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-15 * max(values[-1], 0.0)
    L = vectors[:, kept] * np.sqrt(values[kept])
    r = L.shape[1]
    ends = np.concatenate([costs.rise, costs.fall])
    squared = costs.power == 2
    hessian = np.diag(np.concatenate([np.ones(r), [0.0], 2 * ends if squared else 0 * ends]))
    linear = np.concatenate([np.zeros(r + 1), 0 * ends if squared else ends])
    design = np.hstack([L, np.full((n, 1), float(offset))])
    slack = sp.identity(2 * n, format="csc")
    # y − f − b − ε ≤ ξ₊, f + b − y − ε ≤ ξ₋, both ξ ≥ 0
    A = sp.bmat(
        [
            [sp.csc_matrix(np.vstack([-design, design])), -slack],
            [sp.csc_matrix((2 * n, r + 1)), -slack],
        ],
        format="csc",
    )
    right = np.concatenate([costs.epsilon - y, costs.epsilon + y, np.zeros(2 * n)])
    cones = [clarabel.NonnegativeConeT(4 * n)]
    solution = _solve(hessian, linear, A, right, cones, settings)
    if solution is None:
        return None
    x, z = solution
    most = np.where(ends > 0, np.inf, 0.0) if squared else ends
    sides = np.clip(z[: 2 * n], 0.0, most)
    beta = sides[:n] - sides[n:]
    beta = _balanced(beta) if offset else beta
    w, b = x[:r], float(x[r]) if offset else 0.0
    upper = float(0.5 * w @ w + costs.value(y - L @ w - b).sum())
    return Optimum(beta, b, dual_objective(K, y, costs, beta), upper)


def _balanced(beta: Array) -> Array:
    """β with Σβ = 0, which clarabel meets up to its tolerance: the larger side is scaled down."""
    plus, minus = np.maximum(beta, 0.0), np.maximum(-beta, 0.0)
    total = min(plus.sum(), minus.sum())
    return plus * (total / max(plus.sum(), 1e-300)) - minus * (total / max(minus.sum(), 1e-300))


def _solve(
    hessian: Array,
    linear: Array,
    A: sp.csc_matrix,
    right: Array,
    cones: list,
    settings: clarabel.DefaultSettings,
) -> tuple[Array, Array] | None:
    P = sp.csc_matrix(np.triu(hessian))
    solution = clarabel.DefaultSolver(P, linear, A, right, cones, settings).solve()
    x, z = np.asarray(solution.x), np.asarray(solution.z)
    return (x, z) if np.isfinite(x).all() and np.isfinite(z).all() else None


def _settings() -> Iterator[clarabel.DefaultSettings]:
    """Ways to ask clarabel; a badly scaled problem may need more than the first."""
    for static, equilibrate in ((1e-8, True), (1e-10, True), (1e-8, False), (1e-11, False)):
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_iter = 300
        settings.tol_gap_abs = settings.tol_gap_rel = 1e-12
        settings.tol_feas = 1e-11
        settings.static_regularization_constant = static
        settings.equilibrate_enable = equilibrate
        settings.iterative_refinement_max_iter = 50
        yield settings
