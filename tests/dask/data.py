"""Rows that are made, chunk by chunk, and fits of both sides to compare."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp

from tausvm.dask import Plan

#: a sample of some hundred rows and bands that hold some hundred more: all paths are taken
SMALL = Plan(sample_megabytes=0.03, client_megabytes=1.0)


def rows(n: int = 6000, d: int = 6, seed: int = 0) -> tuple[Any, Any, Any]:
    """X, y whose spread depends on X, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + (1 + 0.3 * X[:, 0]) * rng.standard_t(4, size=n) + 5.0
    return X, y, rng.uniform(0.5, 2.0, size=n)


def chunked(values: Any, size: int = 1100) -> Any:
    """A dask array of these rows; CSR chunks of a sparse matrix."""
    if not sp.issparse(values):
        shape = (size, *values.shape[1:])
        return da.from_array(values, chunks=shape)
    index = da.from_array(np.arange(values.shape[0]), chunks=size)
    return index.map_blocks(
        lambda part: values[part],
        new_axis=1,
        chunks=(index.chunks[0], (values.shape[1],)),
        dtype=values.dtype,
        meta=sp.csr_matrix((0, 0)),
    )


def results(model: Any) -> list[Any]:
    """The results of all levels."""
    return model.result_ if isinstance(model.result_, list) else [model.result_]


def assert_same(lazy: Any, single: Any) -> None:
    """Both optimal to tol by certificates of their own, so equal to both together."""
    for ours, theirs in zip(results(lazy), results(single), strict=True):
        assert ours.dual_gap <= lazy.tol
        allowed = (lazy.tol + single.tol) * abs(theirs.primal_objective) + 1e-12
        assert abs(ours.primal_objective - theirs.primal_objective) <= allowed
        assert ours.dual_objective <= theirs.primal_objective + 1e-9 * abs(theirs.primal_objective)


def objective(model: Any, loss: Any, X: Any, y: Any, cost: Any) -> float:
    """½‖w‖² + Σ cᵢ ℓ(yᵢ − xᵢᵀw − b) of a fitted machine with one level, from the data."""
    w, b = model.coef_, float(model.intercept_[0])
    return float(0.5 * w @ w + np.sum(cost * loss.value(y - X @ w - b, y)))
