"""``to_onnx``: a fitted estimator or pipeline as a graph."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from .. import __version__, inspection
from ..estimators.levels import OrderedLevels
from ..estimators.linear_machine import LinearMachine
from ..estimators.machine import KernelMachine
from ..kernels import mapped
from ..selection import TauPathSVCCV
from ..selection.committee import Committee
from ..tabular.estimators import TabularRegressor
from .graph import Graph
from .kernels import kernel_values, mapped_rows
from .prepare import prepared_input

Array = NDArray[np.float64]


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    tau: float | Sequence[float] | None = None,
) -> Any:
    """Export a fitted estimator, or a pipeline that ends with one, to ONNX.

    The graph computes in float64, so it agrees with ``predict`` to rounding. It takes

    - ``X``, float64 of shape (rows, features); or
    - one input of shape (rows, 1) a column, float64 or text, where the pipeline starts with a
      :class:`~sklearn.compose.ColumnTransformer` of named columns, or for a model of a table
      (:class:`~tausvm.TabularQuantileSVR`), whose missing numbers are NaN and missing text is ""

    and gives

    - ``prediction``, float64 of shape (rows, levels), for a regressor;
    - ``label`` of shape (rows,) and ``decision``, float64 of shape (rows, 1) or (rows, classes),
      for a classifier.

    Levels, kernel and version are in the model's metadata. The Laplacian and the exponential kernel
    need memory of rows × support vectors × features numbers while they run, the others rows ×
    support vectors. Learned features are a linear map before the kernel.

    Parameters
    ----------
    model : fitted estimator
        With a kernel by name; not ``precomputed`` and not a callable. Scalers, imputers and
        one-hot encoders of scikit-learn may stand before it, and :class:`~tausvm.FeatureMetric`.
    path : path, optional
        Where to save it too.
    tau : float or list of float, optional
        For a machine that has every level: which to export, ½ by default. A list gives
        ``prediction``, or ``label`` and ``decision``, with one column a level.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> import numpy as np
    >>> from tausvm import QuantileSVR
    >>> from tausvm.export import to_onnx
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> exported = to_onnx(QuantileSVR(tau=[0.1, 0.9]).fit(X, X.ravel()))
    >>> [output.name for output in exported.graph.output]
    ['prediction']
    """
    machine = inspection.last_step(model)
    check_is_fitted(machine)
    graph = Graph()
    steps = inspection.transformers(model)
    X = prepared_input(graph, steps, _width(steps, machine))
    levels = inspection.levels(model)
    if inspection.has_path(model):
        levels = [0.5] if tau is None else [float(t) for t in np.atleast_1d(tau)]
        # a selection has a machine for every level that is asked for, and one where none is
        whole = inspection.path_machine(model) if tau is None else machine
        _path_outputs(graph, whole, X, levels, flat=tau is None or isinstance(tau, float | int))
    elif tau is not None:
        raise ValueError(f"tau is for machines that have every level, not {type(machine).__name__}")
    elif is_classifier(machine):
        _class_outputs(graph, machine, decision(graph, machine, X))
    else:
        values = predicted(graph, machine, X)
        graph.output(values, "prediction", "DOUBLE", ["rows", _n_levels(machine)])
    metadata = {
        "version": __version__,
        "estimator": type(machine).__name__,
        "tau": json.dumps(levels),
    }
    exported = graph.model(f"{type(machine).__name__} of tausvm {__version__}", metadata)
    if path is not None:
        graph.onnx.save(exported, os.fspath(path))
    return exported


def predicted(graph: Graph, machine: Any, X: str) -> str:
    """What a regressor predicts: levels in order and calibrated where they are."""
    if isinstance(machine, TabularRegressor):
        return predicted(graph, machine.machine_, X)
    best = getattr(machine, "best_estimator_", None)
    if not isinstance(machine, OrderedLevels) and isinstance(best, BaseEstimator):
        return predicted(graph, best, X)  # a search of scikit-learn leaves it to its machine
    values = decision(graph, machine, X)
    if isinstance(machine, OrderedLevels) and machine._orders:
        values = _rising(graph, values, machine.tau)
    shift = getattr(machine, "calibration_", None)
    if shift is None:
        return values
    moved = graph.node("Add", values, graph.constant(np.atleast_1d(shift), "calibration"))
    return _clipped(graph, machine, moved)


def decision(graph: Graph, machine: Any, X: str) -> str:
    """f(x) + b for every row and level, clipped where the machine clips."""
    found = inspection.machines(machine)
    if found != [machine]:  # a selection: one machine a level, or one for all
        return graph.concatenated([decision(graph, part, X) for part in found])
    if isinstance(machine, Committee):
        return _mean(graph, machine, X)
    if isinstance(machine, LinearMachine):
        return _linear(graph, X, np.atleast_2d(machine.coef_), machine.intercept_)
    if isinstance(machine, KernelMachine):
        return _clipped(graph, machine, _expansion(graph, machine, X))
    raise ValueError(f"{type(machine).__name__} has no export to ONNX")


def _mean(graph: Graph, committee: Committee, X: str) -> str:
    """The weighted mean of the machines of a committee."""
    shares = np.asarray(committee.shares, dtype=np.float64)
    parts = graph.concatenated([decision(graph, part, X) for part in committee.machines])
    share = graph.constant((shares / shares.sum())[:, None], "share")
    return graph.node("MatMul", parts, share)


def _expansion(graph: Graph, machine: KernelMachine, X: str) -> str:
    """Σ βᵢ k(xᵢ, x) + b."""
    if machine._precomputed or callable(machine.kernel):
        raise ValueError(
            f"kernel must be a standard one for the export to ONNX, got {machine.kernel!r}"
        )
    if getattr(machine, "output_matrix_", 0) is None:
        raise ValueError("output_kernel must be a name or a matrix for the export to ONNX")
    if machine.kernel == "linear":
        return _linear(graph, X, machine.coef_, machine.intercept_)
    if machine._trend is not None:
        return _beside(graph, machine, X)
    if machine.dual_coef_.shape[1] == 0:  # a constant: nothing is a support vector
        nothing = np.zeros((len(machine.intercept_), machine.n_features_in_))
        return _linear(graph, X, nothing, machine.intercept_)
    support, metric = mapped(machine.support_vectors_, machine._metric), machine._metric
    if metric is not None:
        X = mapped_rows(graph, X, metric)
    values = kernel_values(graph, machine._kernel, X, support, machine._centre)
    sums = graph.node("MatMul", values, graph.constant(machine._weights.T, "beta"))
    return graph.node("Add", sums, graph.constant(machine.intercept_, "intercept"))


def _beside(graph: Graph, machine: KernelMachine, X: str) -> str:
    """f(x) + b, and the trend that it was fitted beside."""
    alone, trend = copy.copy(machine), machine._trend
    assert trend is not None
    alone._trend = None
    line = graph.node("MatMul", X, graph.constant(trend.weights[:, None], "trend"))
    low, high = (graph.constant(float(end)) for end in (trend.low, trend.high))
    return graph.node("Add", _expansion(graph, alone, X), graph.node("Clip", line, low, high))


def _linear(graph: Graph, X: str, coef: Any, intercept: Array) -> str:
    sums = graph.node("MatMul", X, graph.constant(np.asarray(coef).T, "coef"))
    return graph.node("Add", sums, graph.constant(intercept, "intercept"))


def _clipped(graph: Graph, machine: Any, values: str) -> str:
    bounds = getattr(machine, "_range", None)
    if bounds is None:
        return values
    low, high = (graph.constant(float(bound)) for bound in bounds)
    return graph.node("Clip", values, low, high)


def _rising(graph: Graph, values: str, tau: Any) -> str:
    """The levels of each row in order: the k-th smallest value at the k-th smallest level."""
    taus = np.atleast_1d(tau)
    if len(taus) == 1:
        return values
    count = graph.constant(np.array([len(taus)], np.int64))
    rising = graph.node("TopK", values, count, outputs=2, axis=1, largest=0, sorted=1)
    rank = np.argsort(np.argsort(taus, kind="stable"), kind="stable")
    if (np.diff(rank) == 1).all():
        return rising
    return graph.columns(rising, rank)


def _path_outputs(graph: Graph, machine: Any, X: str, taus: list[float], *, flat: bool) -> None:
    """The machines of some levels side by side."""
    at = machine.best_at if isinstance(machine, TauPathSVCCV) else machine.at
    parts = [at(tau) for tau in taus]
    if not is_classifier(machine):
        if machine.monotone:
            raise ValueError("monotone=True has no export to ONNX: ordered=True has")
        values = graph.concatenated([decision(graph, part, X) for part in parts])
        if machine._orders:
            values = _rising(graph, values, taus)
        graph.output(values, "prediction", "DOUBLE", ["rows", len(taus)])
        return
    if flat:
        _class_outputs(graph, parts[0], decision(graph, parts[0], X))
        return
    if len(machine.classes_) != 2:
        raise ValueError("tau must be one level for more than two classes")
    labels, kind = _labels(machine)
    values = graph.concatenated([decision(graph, part, X) for part in parts])
    above = graph.node("Greater", values, graph.constant(0.0))
    best = graph.node("Cast", above, to=graph.onnx.TensorProto.INT64)
    found = graph.node("Gather", graph.constant(labels), best)
    graph.output(found, "label", kind, ["rows", len(taus)])
    graph.output(values, "decision", "DOUBLE", ["rows", len(taus)])


def _labels(machine: Any) -> tuple[NDArray[Any], str]:
    """The classes and their ONNX type."""
    labels = np.asarray(machine.classes_)
    if labels.dtype.kind in "iub":
        return labels.astype(np.int64), "INT64"
    if labels.dtype.kind in "UO" and all(isinstance(label, str) for label in labels):
        return labels, "STRING"
    raise ValueError(
        f"classes_ must be text or whole numbers for the export to ONNX, got {labels!r}"
    )


def _class_outputs(graph: Graph, machine: Any, values: str) -> None:
    labels, kind = _labels(machine)
    if len(labels) == 2:
        flat = graph.node("Reshape", values, graph.constant(np.array([-1], np.int64)))
        above = graph.node("Greater", flat, graph.constant(0.0))
        best = graph.node("Cast", above, to=graph.onnx.TensorProto.INT64)
    else:
        best = graph.node("ArgMax", values, axis=1, keepdims=0)
    graph.output(graph.node("Gather", graph.constant(labels), best), "label", kind, ["rows"])
    width = 1 if len(labels) == 2 else len(labels)
    graph.output(values, "decision", "DOUBLE", ["rows", width])


def _width(steps: list[Any], machine: Any) -> int:
    """The number of features that go into the first step."""
    first = steps[0] if steps else machine
    return int(getattr(first, "n_features_in_", machine.n_features_in_))


def _n_levels(machine: Any) -> int:
    parts = inspection.machines(machine)
    return sum(
        1 if isinstance(part, Committee) else len(np.atleast_1d(part.intercept_)) for part in parts
    )
