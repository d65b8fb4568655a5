"""The steps before a machine: scalers, imputers, encoders and their pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from ..selection import FeatureMetric
from ..tabular import FramePreparation
from .graph import ML_DOMAIN, Graph
from .kernels import mapped_rows
from .table import table_features


def prepared_input(graph: Graph, steps: list[Any], n_features: int) -> str:
    """The inputs of a model and what its steps make of them.

    Numbers come as one input ``X`` of (rows, features). Where the first step picks columns by
    their names, every column is an input of its own, (rows, 1) under its name.
    """
    if steps and isinstance(steps[0], FramePreparation):
        value = table_features(graph, steps.pop(0))
    elif not steps or not isinstance(steps[0], ColumnTransformer):
        value = graph.input("X", n_features)
    else:
        value = _column_transformer(graph, steps.pop(0))
    for step in steps:
        value = transformed(graph, step, value)
    return value


def transformed(graph: Graph, step: Any, value: str) -> str:
    """What a transformer makes of a value."""
    match step:
        case "passthrough" | None:
            return value
        case Pipeline():
            for _, inner in step.steps:
                value = transformed(graph, inner, value)
            return value
        case StandardScaler():
            shift = step.mean_ if step.with_mean else 0.0
            return graph.affine(value, shift, 1.0 if step.scale_ is None else 1.0 / step.scale_)
        case RobustScaler():
            shift = 0.0 if step.center_ is None else step.center_
            return graph.affine(value, shift, 1.0 if step.scale_ is None else 1.0 / step.scale_)
        case MinMaxScaler() if not step.clip:
            return graph.affine(value, -step.min_ / step.scale_, step.scale_)
        case MaxAbsScaler() if not getattr(step, "clip", False):
            return graph.affine(value, 0.0, 1.0 / step.scale_)
        case SimpleImputer() if _fills_nan(step):
            filled = graph.constant(np.asarray(step.statistics_, dtype=np.float64))
            return graph.node("Where", graph.node("IsNaN", value), filled, value)
        case SimpleImputer() if step.statistics_.dtype == object:
            return value  # ONNX has no missing text: rows come with all of their categories
        case OneHotEncoder():
            return _one_hot(graph, step, value)
        case FunctionTransformer() if step.func is None:
            return value
        case FeatureMetric():
            return mapped_rows(graph, value, step.feature_metric_)
    raise ValueError(
        f"{type(step).__name__} (or its settings) has no counterpart in the export to ONNX; "
        "transform before the model, and export the machine alone"
    )


def _fills_nan(step: SimpleImputer) -> bool:
    number = np.asarray(step.statistics_).dtype.kind == "f"
    return number and bool(np.isnan(step.missing_values)) and not step.add_indicator


def _column_transformer(graph: Graph, step: ColumnTransformer) -> str:
    parts: dict[str, str] = {}
    values = []
    for name, inner, columns in step.transformers_:
        if isinstance(inner, str) and inner == "drop":
            continue
        names = [columns] if isinstance(columns, str) else list(columns)
        if not names:
            continue
        if not all(isinstance(column, str) for column in names):
            raise ValueError(
                f"the columns of the step {name!r} must be given by name for the export to ONNX"
            )
        text = _takes_text(inner)
        for column in names:
            if column not in parts:
                parts[column] = graph.input(column, 1, text=text)
        values.append(transformed(graph, inner, graph.concatenated([parts[c] for c in names])))
    return graph.concatenated(values)


def _takes_text(step: Any) -> bool:
    inner = step.steps[-1][1] if isinstance(step, Pipeline) else step
    if not isinstance(inner, OneHotEncoder):
        return False
    return all(np.asarray(c).dtype.kind in "OU" for c in inner.categories_)


def _one_hot(graph: Graph, step: OneHotEncoder, value: str) -> str:
    """One column a category; zeros for one that was not seen."""
    if step.drop is not None or step._infrequent_enabled:
        raise ValueError("OneHotEncoder with drop or infrequent categories cannot be exported")
    shape = graph.constant(np.array([0, -1], np.int64))
    parts = []
    for k, categories in enumerate(step.categories_):
        column = graph.columns(value, [k])
        text = np.asarray(categories).dtype.kind in "OU"
        given: dict[str, Any] = (
            {"cats_strings": [str(c) for c in categories]}
            if text
            else {"cats_int64s": [int(c) for c in categories]}
        )
        if not text:
            if any(float(c) != int(c) for c in categories):
                raise ValueError("categories must be text or whole numbers for the export to ONNX")
            column = graph.node("Cast", column, to=graph.onnx.TensorProto.INT64)
        hot = graph.node("OneHotEncoder", column, domain=ML_DOMAIN, zeros=1, **given)
        flat = graph.node("Reshape", hot, shape)
        parts.append(graph.node("Cast", flat, to=graph.onnx.TensorProto.DOUBLE))
    return graph.concatenated(parts)
