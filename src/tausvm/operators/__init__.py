"""What K is: kernel rows computed as they are needed, held or given; XXᵀ of a linear machine;
nothing kept of it; matrix-valued kernels."""

from .base import Operator
from .kernel import CachedKernel, GivenKernel, HeldKernel, KernelOperator
from .linear import LinearOperator, Portions, Tally
from .matrix import MatrixOperator, UnknownMatrix
from .separable import SeparableKernel
from .streamed import Blocks, StreamedKernel
from .transformable import TransformedKernel

__all__ = [
    "Blocks",
    "CachedKernel",
    "GivenKernel",
    "HeldKernel",
    "KernelOperator",
    "LinearOperator",
    "MatrixOperator",
    "Operator",
    "Portions",
    "SeparableKernel",
    "StreamedKernel",
    "Tally",
    "TransformedKernel",
    "UnknownMatrix",
]
