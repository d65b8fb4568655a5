"""Whether a loaded model is whole: its arrays fit together, so that it can be used.

A file may be well formed and still hold arrays that do not belong together. The compiled code
trusts its shapes, so they are checked when the model is loaded and not when it is used.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.interpolate import BSpline
from sklearn.base import BaseEstimator

from ..estimators.linear_machine import LinearMachine
from ..estimators.machine import KernelMachine
from ..estimators.path_machine import PathMachine
from ..selection import FeatureMetric
from ..tabular.codes import CODES
from ..tabular.estimators import TabularRegressor
from ..tabular.preparation import FramePreparation
from .archive import ModelFileError

MAX_DEPTH = 50


#: parameters that came after the first version, with the value that means what it did
CAME_LATER = {"scale_C": False, "ordered": False, "calibrate": None, "feature_metric": None}


def complete(model: Any) -> None:
    """Give the parts of an older file the parameters and fields that it does not know of."""
    for part in _parts(model):
        if not _is_ours(part):
            continue
        missing: dict[str, Any] = {}
        if isinstance(part, BaseEstimator):
            parameters = inspect.signature(type(part)).parameters
            missing = {name: given.default for name, given in parameters.items()} | CAME_LATER
            missing = {name: missing[name] for name in parameters}
        elif is_dataclass(part):
            missing = {
                field.name: field.default_factory() if callable(field.default_factory) else default
                for field in fields(part)
                if (default := field.default) is not MISSING or callable(field.default_factory)
            }
        for name, value in missing.items():
            if name not in vars(part):
                object.__setattr__(part, name, value)  # of a frozen one too


def _is_ours(part: Any) -> bool:
    return type(part).__module__.startswith(__name__.partition(".")[0] + ".")


def check_model(model: Any) -> None:
    """A ModelFileError unless this is an estimator whose parts fit together."""
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"it holds a {type(model).__name__}, not an estimator")
    for part in _parts(model):
        if sp.issparse(part):
            part.check_format(full_check=True)
        elif isinstance(part, PathMachine):
            _check_path(part)
        elif isinstance(part, KernelMachine):
            _check_machine(part)
        elif isinstance(part, LinearMachine):
            _check_linear(part)
        elif isinstance(part, FramePreparation):
            _check_preparation(part)
        elif isinstance(part, TabularRegressor):
            _check_tabular(part)
        elif isinstance(part, FeatureMetric):
            _check_metric(part)
        elif isinstance(part, BSpline):
            BSpline(part.t, part.c, part.k)  # a ValueError where these do not fit together


def _parts(model: Any) -> Iterator[Any]:
    """Everything that is reachable through attributes and containers."""
    stack, seen = [(model, 0)], set()
    while stack:
        item, depth = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if depth > MAX_DEPTH:
            raise ModelFileError(f"it is nested more than {MAX_DEPTH} deep")
        yield item
        if isinstance(item, dict):
            stack.extend((value, depth + 1) for value in item.values())
        elif isinstance(item, list | tuple):
            stack.extend((value, depth + 1) for value in item)
        elif hasattr(item, "__dict__") and not isinstance(item, type):
            stack.extend((value, depth + 1) for value in vars(item).values())


def _check_machine(machine: KernelMachine) -> None:
    """The expansion of a kernel machine: β, support vectors, offsets and the kernel."""
    if not hasattr(machine, "dual_coef_"):
        return  # not fitted
    name = type(machine).__name__
    machine._check_parameters()
    beta, support = machine.dual_coef_, machine.support_
    if not (_is_float(beta, 2) and _is_float(machine.intercept_, 1)):
        raise ModelFileError(f"{name}: dual_coef_ and intercept_ must be arrays of floats")
    if len(machine.intercept_) != len(beta) or len(support) != beta.shape[1]:
        raise ModelFileError(f"{name}: dual_coef_, support_ and intercept_ do not fit together")
    if machine._precomputed:
        return
    vectors = machine.support_vectors_
    if callable(machine.kernel) and not hasattr(machine, "n_features_in_"):
        if len(vectors) != beta.shape[1]:  # of rows that are no numbers
            raise ModelFileError(f"{name}: support_vectors_ do not fit dual_coef_")
        return
    width = machine.n_features_in_
    if not (sp.issparse(vectors) or _is_float(vectors, 2)):
        raise ModelFileError(f"{name}: support_vectors_ must be a matrix of floats")
    if vectors.shape != (beta.shape[1], width):
        raise ModelFileError(f"{name}: support_vectors_ do not fit dual_coef_ or the features")
    if machine._weights.shape != beta.shape:  # B times β for joint machines
        raise ModelFileError(f"{name}: the output matrix does not fit dual_coef_")
    if machine._metric is not None and not _maps(machine._metric, width):
        raise ModelFileError(f"{name}: the metric does not fit the features")
    trend = machine._trend
    if trend is not None and not (_is_float(trend.weights, 1) and len(trend.weights) == width):
        raise ModelFileError(f"{name}: the trend does not fit the features")
    centre = machine._centre
    if centre is not None and (not _is_float(centre, 1) or len(centre) != width):
        raise ModelFileError(f"{name}: the centre does not fit the features")


def _check_path(machine: PathMachine) -> None:
    """The training rows of a path and what belongs to them."""
    if not hasattr(machine, "paths_"):
        return  # not fitted
    machine._check_parameters()
    rows = machine._data.X
    if not (sp.issparse(rows) or _is_float(rows, 2)) or rows.shape[1] != machine.n_features_in_:
        raise ModelFileError(f"{type(machine).__name__}: its rows do not fit the features")


def _check_linear(machine: LinearMachine) -> None:
    """The weights and offsets of a linear machine."""
    if not hasattr(machine, "coef_"):
        return  # not fitted
    machine._check_parameters()
    name, coef = type(machine).__name__, np.atleast_2d(machine.coef_)
    if not (_is_float(coef, 2) and _is_float(machine.intercept_, 1)):
        raise ModelFileError(f"{name}: coef_ and intercept_ must be arrays of floats")
    if coef.shape != (len(machine.intercept_), machine.n_features_in_):
        raise ModelFileError(f"{name}: coef_ does not fit intercept_ or the features")


def _check_preparation(preparation: FramePreparation) -> None:
    """A code a column, or a divisor where they come from a sparse matrix."""
    if not hasattr(preparation, "feature_groups_"):
        return  # not fitted
    largest, width = preparation._largest, preparation.n_features_in_
    if largest is None:
        codes = preparation._codes
        if len(codes) != width or not all(c is None or isinstance(c, CODES) for c in codes):
            raise ModelFileError("FramePreparation: its codes do not fit its columns")
    elif not _is_float(largest, 1) or len(largest) != width:
        raise ModelFileError("FramePreparation: its divisors do not fit its columns")


def _check_tabular(model: TabularRegressor) -> None:
    """What the preparation makes is what the machine reads."""
    if not hasattr(model, "machine_"):
        return  # not fitted
    if len(model.preparation_.feature_groups_) != model.machine_.n_features_in_:
        raise ModelFileError(f"{type(model).__name__}: its preparation does not fit its machine")


def _check_metric(transformer: FeatureMetric) -> None:
    """The map of a transformer."""
    if not hasattr(transformer, "feature_metric_"):
        return  # not fitted
    if not _maps(transformer.feature_metric_, transformer.n_features_in_):
        raise ModelFileError("FeatureMetric: feature_metric_ does not fit the features")


def _maps(weights: Any, width: int) -> bool:
    """Whether these are weights (width,) or a matrix (width, width)."""
    return any(_is_float(weights, k) and weights.shape == (width,) * k for k in (1, 2))


def _is_float(array: Any, ndim: int) -> bool:
    return isinstance(array, np.ndarray) and array.dtype == np.float64 and array.ndim == ndim
