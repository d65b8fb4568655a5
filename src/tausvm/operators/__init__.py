"""What K is: kernel rows computed as they are needed, held or given."""

from .base import Operator
from .kernel import CachedKernel, GivenKernel, HeldKernel, KernelOperator

__all__ = ["CachedKernel", "GivenKernel", "HeldKernel", "KernelOperator", "Operator"]
