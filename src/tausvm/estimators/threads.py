"""BLAS on one thread while a machine is fitted."""

from ..threads import one_blas_thread

__all__ = ["one_blas_thread"]
