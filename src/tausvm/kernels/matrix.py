"""Matrix-valued kernels K(x, x') ∈ Rᵖˣᵖ: B of k(x, x')·B, and k(Tᵢ(x), Tⱼ(x'))."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: a given B may be asymmetric or indefinite by this share of its largest entry
ROUNDING = 1e-10


def level_kernel(tau: Array, gamma_tau: float) -> Array:
    """B = exp(−gamma_tau·(τᵢ − τⱼ)²): near levels have near curves."""
    values: Array = np.exp(-gamma_tau * np.square(np.subtract.outer(tau, tau)))
    return values


def check_output_matrix(B: Any, p: int, name: str = "output_kernel") -> Array:
    """A given B as a float64 array; a ValueError unless it is (p, p), symmetric and PSD."""
    try:
        matrix = np.array(B, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a ({p}, {p}) matrix of numbers, got {B!r}") from None
    if matrix.shape != (p, p):
        raise ValueError(f"{name} must be of shape ({p}, {p}), got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} must be finite, got {B!r}")
    scale = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > ROUNDING * scale:
        raise ValueError(f"{name} must be symmetric, got {B!r}")
    matrix = 0.5 * (matrix + matrix.T)
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest < -ROUNDING * scale or scale == 0.0:
        raise ValueError(
            f"{name} must be positive semidefinite and not zero, got one whose smallest "
            f"eigenvalue is {smallest:.3g}"
        )
    return matrix


@dataclass(frozen=True)
class TransformableKernel:
    """K(x, x')ᵢⱼ = k(Tᵢ(x), Tⱼ(x')): one transformation of the features an output.

    With a polynomial k it is the transformable kernel of the paper's Example 1. Outputs that
    should look at the features in different ways, some of them only or on other scales, can
    do so and still share what they learn.

    Parameters
    ----------
    transformations : sequence of callables
        Tⱼ takes the rows of X and returns as many rows; all give the same number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm.kernels import TransformableKernel
    >>> kernel = TransformableKernel([lambda X: X, lambda X: 2 * X])
    >>> [image.shape for image in kernel.images(np.ones((3, 2)))]
    [(3, 2), (3, 2)]
    """

    transformations: Sequence[Callable[[Any], Any]]

    def __len__(self) -> int:
        return len(self.transformations)

    def images(self, X: Any) -> list[Any]:
        """Tⱼ(X) for every j: arrays, or CSR matrices where one of them is sparse."""
        images = [T(X) for T in self.transformations]
        sparse = any(sp.issparse(image) for image in images)
        try:
            images = [
                sp.csr_matrix(image, dtype=np.float64)
                if sparse
                else np.ascontiguousarray(image, dtype=np.float64)
                for image in images
            ]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"output_kernel: the transformations must return arrays of numbers: {error}"
            ) from None
        shapes = {image.shape for image in images}
        if len(shapes) != 1 or images[0].ndim != 2 or images[0].shape[0] != X.shape[0]:
            raise ValueError(
                "output_kernel: the transformations must return arrays of one shape with "
                f"{X.shape[0]} rows, got shapes {sorted(shapes)}"
            )
        for image in images:
            if not np.isfinite(image.data if sparse else image).all():
                raise ValueError(
                    "output_kernel: the transformations must return finite numbers, got inf or NaN"
                )
        return images


__all__ = ["TransformableKernel", "check_output_matrix", "level_kernel"]
