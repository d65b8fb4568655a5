"""Kernels and the rows of their Gram matrices."""

from .gram import Gram, HeldGram, KernelGram, PrecomputedGram
from .points import Points
from .scalar import KERNELS, Kernel, make_kernel

__all__ = [
    "KERNELS",
    "Gram",
    "HeldGram",
    "Kernel",
    "KernelGram",
    "Points",
    "PrecomputedGram",
    "make_kernel",
]
