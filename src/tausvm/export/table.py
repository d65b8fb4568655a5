"""The preparation of a table: its codes as nodes, one input a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..tabular import FramePreparation
from ..tabular.codes import CategoryCode, NumberCode, OrderedCode, TargetCode
from .graph import ML_DOMAIN, Graph


def table_features(graph: Graph, preparation: FramePreparation) -> str:
    """The features of a table.

    Every column that has features is an input of (rows, 1), float64 for a number and text for a
    category; missing numbers are NaN, missing text is "". Numbers without names, and a sparse
    matrix, are one input ``X``.
    """
    width = preparation.n_features_in_
    if preparation._largest is not None:
        return graph.affine(graph.input("X", width), 0.0, 1.0 / preparation._largest)
    codes = [(k, code) for k, code in enumerate(preparation._codes) if code is not None]
    if not codes:
        raise ValueError("a model without a column that varies has no export to ONNX")
    numbers = [(k, code) for k, code in codes if isinstance(code, NumberCode)]
    if len(numbers) == len(codes) and not hasattr(preparation, "feature_names_in_"):
        X = graph.input("X", width)
        return graph.concatenated([_number(graph, c, graph.columns(X, [k])) for k, c in numbers])
    names = [str(column["name"]) for column in preparation.columns_]
    return graph.concatenated([_encoded(graph, code, names[k]) for k, code in codes])


def _encoded(graph: Graph, code: Any, name: str) -> str:
    match code:
        case NumberCode():
            return _number(graph, code, graph.input(name, 1))
        case OrderedCode():
            return _ordered(graph, code, name)
        case CategoryCode():
            return _looked_up(graph, name, *code.table())
        case TargetCode():
            return _looked_up(graph, name, *code.table())
    raise ValueError(
        f"column {name!r} is a date, which has no counterpart in the export to ONNX; prepare it "
        "before the model, and export the machine alone"
    )


def _number(graph: Graph, code: NumberCode, value: str) -> str:
    missing = graph.node("IsNaN", value)
    parts = []
    if not code.constant:
        filled = graph.node("Where", missing, graph.constant(code.fill), value)
        moved = graph.affine(filled, code.low, 0.5 / code.half_range)
        z = graph.affine(moved, code.centre, 1.0 / code.scale)
        if code.drawn_in is not None:
            shift, spread = code.drawn_in
            z = graph.affine(_arcsinh(graph, z), shift, 1.0 / spread)
        parts.append(z)
    if code.indicator:
        half = 0.5 * code.distance
        marks = graph.constant(half), graph.constant(-half)
        parts.append(graph.node("Where", missing, *marks))
    return graph.concatenated(parts)


def _arcsinh(graph: Graph, z: str) -> str:
    """sign(z)·log(|z| + √(z² + 1)): runtimes have arcsinh itself in float32 only."""
    size = graph.node("Abs", z)
    root = graph.node("Sqrt", graph.node("Add", graph.node("Mul", z, z), graph.constant(1.0)))
    return graph.node(
        "Mul", graph.node("Sign", z), graph.node("Log", graph.node("Add", size, root))
    )


def _ordered(graph: Graph, code: OrderedCode, name: str) -> str:
    """The place of a category, NaN for one that is not in the order."""
    places = np.column_stack([np.arange(len(code.order)), np.ones(len(code.order))])
    found = _looked_up(graph, name, code.order, places)
    seen = graph.node("Greater", graph.columns(found, [1]), graph.constant(0.5))
    place = graph.node("Where", seen, graph.columns(found, [0]), graph.constant(np.nan))
    return _number(graph, code.number, place)


def _looked_up(graph: Graph, name: str, texts: Sequence[str], features: Any) -> str:
    """The row of features of each text, zeros for one that is not there."""
    value = graph.input(name, 1, text=True)
    hot = graph.node("OneHotEncoder", value, domain=ML_DOMAIN, zeros=1, cats_strings=list(texts))
    flat = graph.node("Reshape", hot, graph.constant(np.array([-1, len(texts)], np.int64)))
    numbers = graph.node("Cast", flat, to=graph.onnx.TensorProto.DOUBLE)
    return graph.node("MatMul", numbers, graph.constant(np.asarray(features, dtype=np.float64)))
