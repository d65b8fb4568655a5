"""What K is: kernel rows computed as they are needed, held or given; matrix-valued kernels."""

from .base import Operator
from .kernel import CachedKernel, GivenKernel, HeldKernel, KernelOperator
from .matrix import MatrixOperator, UnknownMatrix
from .separable import SeparableKernel
from .transformable import TransformedKernel

__all__ = [
    "CachedKernel",
    "GivenKernel",
    "HeldKernel",
    "KernelOperator",
    "MatrixOperator",
    "Operator",
    "SeparableKernel",
    "TransformedKernel",
    "UnknownMatrix",
]
