"""Dense factorisations cut into pieces short enough to interrupt, and conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from .._core.lapack import factorise
from .._core.lapack import solve as solve_in_place
from .._core.lapack import solve_lower as solve_lower_in_place

Array = NDArray[np.float64]
#: float32 or float64
Real = TypeVar("Real", bound=np.floating[Any])

#: the first share of the diagonal that may make up for rounding
LIFT = 1e-15


@dataclass(frozen=True)
class Panels:
    """How a factorisation is cut into pieces."""

    #: up to this order it is one LAPACK call, a quarter of a second
    one_call: int = 3072
    #: columns of a piece, some tens of milliseconds
    width: int = 512


PANELS = Panels()


class NotDefinite(LinAlgError):
    """A Cholesky factorisation that ended at a pivot that is not positive.

    Attributes
    ----------
    order : int
        That of the leading matrix that is not positive definite.
    """

    def __init__(self, order: int) -> None:
        super().__init__(f"not positive definite at order {order}")
        self.order = order


def cholesky(A: NDArray[Real], panels: Panels = PANELS) -> NDArray[Real]:
    """The lower Cholesky factor of a Fortran-ordered matrix, in place.

    What is above the diagonal stays as it was. Large matrices go panel by panel, so that Python
    sees Ctrl-C in between.
    Raises NotDefinite where A is not positive definite.
    """
    n, width = len(A), panels.width
    if n <= panels.one_call:
        order = factorise(A)
        if order:
            raise NotDefinite(order)
        return A
    for k in range(0, n, width):
        e = min(k + width, n)
        if k:
            for r in range(k, n, 4 * width):
                s = min(r + 4 * width, n)
                change = A[r:s, :k] @ A[k:e, :k].T
                A[r:s, k:e] -= np.tril(change) if r == k else change
        try:
            A[k:e, k:e] = cholesky(np.asfortranarray(A[k:e, k:e]), panels)
        except NotDefinite as error:
            raise NotDefinite(k + error.order) from None
        if e < n:
            A[e:, k:e] = solve_lower(A[k:e, k:e], A[e:, k:e].T).T
    return A


def lifted_cholesky(A: Array, most: float, alike: bool = False) -> Array:
    """The lower factor of a symmetric Fortran-ordered matrix whose definiteness rounding may hide,
    in place.

    Where it is needed the diagonal is raised by a share of itself, a hundred times more as often
    as that is not enough; with ``alike`` by one of its mean, for a matrix all of whose rows round
    alike.
    Raises LinAlgError where ``most`` is not enough: then it is not rounding that fails.
    """
    entries = np.einsum("ii->i", A)
    diagonal = entries.copy()
    if not np.isfinite(diagonal).all():
        raise LinAlgError("the diagonal has overflowed")
    unit = (float(diagonal.mean()) or 1.0) if alike else np.abs(diagonal)
    lift = 0.0
    while True:
        try:
            entries += lift * unit
            return cholesky(A)
        except LinAlgError:
            lift = max(100.0 * lift, LIFT)
            if lift > most:
                raise
            # what is above the diagonal has stayed
            A[:] = np.triu(A, 1)
            A += A.T
            entries[:] = diagonal


def copy_symmetric(A: Array) -> Array:
    """A Fortran-ordered copy of a symmetric C-ordered matrix, in pieces.

    Memory that is touched for the first time can be slow to get: Ctrl-C is seen in between.
    """
    out = np.empty(A.shape, order="F")
    step = max(1, 2**20 // max(len(A), 1))
    for start in range(0, len(A), step):
        out.T[start : start + step] = A[start : start + step]
    return out


def cholesky_solve(factor: NDArray[Real], b: NDArray[Real]) -> NDArray[Real]:
    """Solve A x = b for a lower Cholesky factor of A; b is a vector or has columns."""
    x = np.array(b, dtype=factor.dtype, order="F", ndmin=1)
    solve_in_place(np.asfortranarray(factor), x.reshape(len(x), -1, order="F"))
    return x


def solve_lower(factor: NDArray[Real], b: NDArray[Real]) -> NDArray[Real]:
    """Solve L x = b for the lower triangle L of a matrix; b is a vector or has columns."""
    x = np.array(b, dtype=factor.dtype, order="F", ndmin=1)
    solve_lower_in_place(np.asfortranarray(factor), x.reshape(len(x), -1, order="F"))
    return x


def conjugate_gradients(
    product: Callable[[Array], Array],
    right: Array,
    precondition: Callable[[Array], Array],
    enough: Callable[[Array, float], bool],
    most: int,
    start: Array | None = None,
) -> tuple[Array, bool]:
    """Solve A x = b for a positive definite A by preconditioned conjugate gradients.

    Parameters
    ----------
    product : callable
        v ↦ Av; what it returns is written to.
    right : array
        b, of any shape.
    precondition : callable
        r ↦ M⁻¹r for an M near A.
    enough : callable
        Of the residual r = b − Ax and its energy rᵀM⁻¹r, about that of the error: whether x will
        do. It is asked before every product.
    most : int
        Products at most, that of the start not counted.
    start : array or None
        The first x; None is 0, which takes no product.

    Returns
    -------
    x : array
    arrived : bool
        Whether ``enough`` was content, or the residual 0.
    """
    x = np.zeros_like(right) if start is None else start.copy()
    residual = right.copy() if start is None else right - product(x)
    z = precondition(residual)
    direction, energy = z.copy(), float(np.vdot(residual, z))
    for _ in range(most):
        if not energy > 0 or enough(residual, energy):
            return x, True
        image = product(direction)
        curvature = float(np.vdot(direction, image))
        if not curvature > 0:  # what rounding has left of A
            return x, False
        length = energy / curvature
        x += length * direction
        image *= length
        residual -= image
        z = precondition(residual)
        before, energy = energy, float(np.vdot(residual, z))
        direction *= energy / before
        direction += z
    return x, enough(residual, energy)


__all__ = [
    "LinAlgError",
    "NotDefinite",
    "Panels",
    "cholesky",
    "cholesky_solve",
    "conjugate_gradients",
    "copy_symmetric",
    "lifted_cholesky",
    "solve_lower",
]
