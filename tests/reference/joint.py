"""The joint problem, its loss and its proximal operator as cone programs for clarabel."""

from __future__ import annotations

import clarabel
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]


def solve_program(
    hessian: Array,
    linear: Array,
    outputs: tuple[Array, Array, Array, Array],
    epsilon: float,
    sums: bool,
) -> tuple[Array, float]:
    """min ½αᵀHα − linear·α + Σᵢ (ε‖αᵢ‖ + Σⱼ gᵢⱼ(αᵢⱼ))  [Σᵢ αᵢ = 0], and its value.

    ``outputs`` holds lower, upper, ridge₋ and ridge₊, each (n, p) like ``linear``, bounds
    possibly infinite; the rows of ``hessian`` go through α row by row. Where ridges differ α is
    written as plus − minus.
    """
    lower, upper, ridge_minus, ridge_plus = (table.ravel() for table in outputs)
    n, p = linear.shape
    m = n * p
    eye = sp.identity(m, format="csc")
    if (ridge_plus == ridge_minus).all():
        alpha = eye
        quadratic = np.diag(ridge_plus)
        inequalities, ends = [eye, -eye], [upper, -lower]
    else:
        alpha = sp.hstack([eye, -eye], format="csc")
        quadratic = np.diag(np.concatenate([ridge_plus, ridge_minus]))
        inequalities = [-sp.identity(2 * m, format="csc"), sp.identity(2 * m, format="csc")]
        ends = [np.zeros(2 * m), np.concatenate([upper, -lower])]
    kept = [np.isfinite(end) for end in ends]
    inequalities = [block.tocsr()[rows] for block, rows in zip(inequalities, kept, strict=True)]
    ends = [end[rows] for end, rows in zip(ends, kept, strict=True)]
    quadratic = quadratic + alpha.T @ hessian @ alpha
    norms = n if epsilon > 0 else 0
    P = sp.block_diag([sp.csc_matrix(quadratic), sp.csc_matrix((norms, norms))], format="csc")
    q = np.concatenate([-(alpha.T @ linear.ravel()), np.full(norms, epsilon)])

    def widened(block: sp.csc_matrix) -> sp.csc_matrix:
        return sp.hstack([block, sp.csc_matrix((block.shape[0], norms))], format="csc")

    rows, right, cones = [], [], []
    if sums:
        rows.append(widened(sp.csc_matrix(np.tile(np.eye(p), (1, n))) @ alpha))
        right.append(np.zeros(p))
        cones.append(clarabel.ZeroConeT(p))
    rows += [widened(block) for block in inequalities]
    right += ends
    cones.append(clarabel.NonnegativeConeT(sum(len(end) for end in ends)))
    picked = widened(alpha).tocsr()
    for i in range(norms):
        top = sp.csr_matrix(([-1.0], ([0], [alpha.shape[1] + i])), shape=(1, len(q)))
        rows += [top, -picked[i * p : (i + 1) * p]]
        right.append(np.zeros(p + 1))
        cones.append(clarabel.SecondOrderConeT(p + 1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 300
    A = sp.vstack(rows, format="csc")
    for tol in (1e-11, 1e-10, 1e-9):  # where it breaks off, it is better for being asked for less
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
        solution = clarabel.DefaultSolver(
            sp.triu(P, format="csc"), q, A, np.concatenate(right), cones, settings
        ).solve()
        if solution.status == clarabel.SolverStatus.Solved:
            break
    x = np.asarray(solution.x)[: alpha.shape[1]]
    return (alpha @ x).reshape(n, p), float(solution.obj_val)


def loss_program(residual: Array, outputs: tuple[Array, ...], epsilon: float) -> float:
    """Σᵢ sup_a ⟨a, rᵢ⟩ − hᵢ(a), the group loss."""
    m = residual.size
    return -solve_program(np.zeros((m, m)), residual, outputs, epsilon, False)[1]
