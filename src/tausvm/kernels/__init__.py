"""Kernels: k(x, x') of one output or several, and the points they take."""

from .matrix import TransformableKernel, check_output_matrix, level_kernel
from .points import Points, mapped
from .scalar import KERNELS, Kernel, make_kernel

__all__ = [
    "KERNELS",
    "Kernel",
    "Points",
    "TransformableKernel",
    "check_output_matrix",
    "level_kernel",
    "make_kernel",
    "mapped",
]
