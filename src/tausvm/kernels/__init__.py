"""Kernels: k(x, x') of one output or several, and the points they take."""

from .matrix import (
    MatrixGram,
    SeparableGram,
    TransformableGram,
    TransformableKernel,
    UnknownGram,
    check_output_matrix,
    level_kernel,
)
from .points import Points
from .scalar import KERNELS, Kernel, make_kernel

__all__ = [
    "KERNELS",
    "Kernel",
    "MatrixGram",
    "Points",
    "SeparableGram",
    "TransformableGram",
    "TransformableKernel",
    "UnknownGram",
    "check_output_matrix",
    "level_kernel",
    "make_kernel",
]
