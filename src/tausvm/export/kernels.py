"""Kernel values between the rows of an input and the support vectors, as nodes of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..kernels.scalar import RBF, Exponential, Kernel, Laplacian, Linear, Polynomial, Sigmoid
from .graph import Graph

Array = NDArray[np.float64]


def mapped_rows(graph: Graph, X: str, metric: Array) -> str:
    """The rows of an input under the linear map of a machine."""
    return graph.node("Mul" if metric.ndim == 1 else "MatMul", X, graph.constant(metric, "metric"))


def kernel_values(graph: Graph, kernel: Kernel, X: str, support: Any, centre: Array | None) -> str:
    """k(x, s) for every row x and support vector s, shape (rows, n_support).

    Distances are taken after the shift by ``centre``, as the library does, which keeps the
    digits of data far from the origin.
    """
    points = np.asarray(support.toarray() if sp.issparse(support) else support, dtype=np.float64)
    if isinstance(kernel, RBF | Laplacian | Exponential):
        distance = _DISTANCES[type(kernel)]
        shift = np.zeros(points.shape[1]) if centre is None else centre
        moved, points = graph.node("Sub", X, graph.constant(shift)), points - shift
        scaled = graph.node("Mul", distance(graph, moved, points), graph.constant(-kernel.gamma))
        return graph.node("Exp", scaled)
    products = graph.node("MatMul", X, graph.constant(points.T, "support"))
    if isinstance(kernel, Linear):
        return products
    if isinstance(kernel, Polynomial | Sigmoid):
        inner = graph.node("Mul", products, graph.constant(float(kernel.gamma)))
        inner = graph.node("Add", inner, graph.constant(float(kernel.coef0)))
        if isinstance(kernel, Sigmoid):
            return graph.node("Tanh", inner)
        return graph.node("Pow", inner, graph.constant(float(kernel.degree)))
    raise ValueError(
        f"kernel must be a standard one for the export to ONNX, got {type(kernel).__name__}"
    )


def _squared(graph: Graph, moved: str, points: Array) -> str:
    """‖x − s‖² from norms and products, never below 0."""
    squares = graph.node("Mul", moved, moved)
    norms = graph.node("ReduceSum", squares, graph.constant(np.array([1], np.int64)), keepdims=1)
    products = graph.node("MatMul", moved, graph.constant(-2.0 * points.T, "support"))
    both = graph.node("Add", norms, graph.constant((points**2).sum(axis=1)))
    return graph.node("Max", graph.node("Add", products, both), graph.constant(0.0))


def _euclidean(graph: Graph, moved: str, points: Array) -> str:
    """‖x − s‖₂ from differences, whose root is exact near 0 too."""
    apart = _apart(graph, moved, points)
    last = graph.constant(np.array([2], np.int64))
    squares = graph.node("ReduceSum", graph.node("Mul", apart, apart), last, keepdims=0)
    return graph.node("Sqrt", squares)


def _city_block(graph: Graph, moved: str, points: Array) -> str:
    """‖x − s‖₁."""
    last = graph.constant(np.array([2], np.int64))
    sizes = graph.node("Abs", _apart(graph, moved, points))
    return graph.node("ReduceSum", sizes, last, keepdims=0)


def _apart(graph: Graph, moved: str, points: Array) -> str:
    """x − s of every row and support vector: holds (rows, n_support, features) numbers."""
    wide = graph.node("Unsqueeze", moved, graph.constant(np.array([1], np.int64)))
    return graph.node("Sub", wide, graph.constant(points[None], "support"))


#: of the kernels exp(−γ·distance)
_DISTANCES = {RBF: _squared, Laplacian: _city_block, Exponential: _euclidean}
