"""Kernels and the rows of their Gram matrices."""

from .gram import Gram, HeldGram, KernelGram, PrecomputedGram
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
    "Gram",
    "HeldGram",
    "Kernel",
    "KernelGram",
    "MatrixGram",
    "Points",
    "PrecomputedGram",
    "SeparableGram",
    "TransformableGram",
    "TransformableKernel",
    "UnknownGram",
    "check_output_matrix",
    "level_kernel",
    "make_kernel",
]
