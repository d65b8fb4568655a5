"""The np×np matrix of a matrix-valued kernel, as an operator on coefficients (n, p)."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from .base import Operator

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class MatrixOperator(Operator):
    """What the solvers of several levels or outputs ask of K beside products."""

    #: bytes that solvers may use beside what the matrix holds
    room: float = np.inf

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """What solvers made of the matrix and keep for other problems with it."""
        return {}

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """The matrix times a positive number, for the same room."""

    @property
    @abstractmethod
    def diagonal(self) -> Array:
        """K(xᵢ, xᵢ), shape (n, p, p)."""

    @abstractmethod
    def column(self, i: int, k: int) -> Array:
        """K(x, xᵢ)eₖ at all x, shape (n, p)."""

    @abstractmethod
    def rows(self, index: Index) -> tuple[Array, Index]:
        """Rows for coordinate steps at some samples, and where the row of each is.

        n numbers k(xᵢ, ·) where the kernel is k·B, else the p columns of the sample's block.
        """


class UnknownMatrix(MatrixOperator):
    """A matrix for which there was no time: f = 0 is the only function that can be judged."""

    def __init__(self, n: int, p: int) -> None:
        self._shape = n, p

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape

    def certificate_seconds(self, support: int) -> float:
        return np.inf

    def scaled(self, factor: float) -> Self:
        return self

    def product(self, beta: Array) -> NoReturn:
        raise self._unknown

    @property
    def diagonal(self) -> NoReturn:
        raise self._unknown

    def column(self, i: int, k: int) -> NoReturn:
        raise self._unknown

    def rows(self, index: Index) -> NoReturn:
        raise self._unknown

    @property
    def _unknown(self) -> RuntimeError:
        return RuntimeError("the kernel matrix was not computed")


__all__ = ["MatrixOperator", "UnknownMatrix"]
