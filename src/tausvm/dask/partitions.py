"""Partitions of Dask collections, and passes over them.

A pass is one task a partition and a tree of sums; what comes back has the size of a model, not of
the data. Nothing is stored between passes: a partition is read again, or recomputed where its
worker was lost.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeVar

import dask
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed, delayed

from ..estimators.data import well_formed
from ..estimators.linear_data import check_size, without_duplicates
from ..threads import as_worker, one_blas_thread
from .client import compute
from .settings import Plan

T = TypeVar("T")

#: kinds of NumPy types that are numbers
NUMERIC = "fiub"


class BadPartition(ValueError):
    """A partition cannot be used; the message names it and says why."""

    def __init__(self, index: int, fault: str) -> None:
        super().__init__(index, fault)
        self.index, self.fault = index, fault

    def __str__(self) -> str:
        return f"partition {self.index}: {self.fault}"


@dataclass(frozen=True)
class Block:
    """Rows of positive weight in one partition, checked.

    ``index`` is the place of the partition, and in it that of a piece; random draws start there.
    """

    index: tuple[int, ...]
    X: Any
    y: Any
    weight: Any

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Shape:
    """What all partitions have to agree on."""

    n_features: int
    names: tuple[str, ...] | None


@dataclass(frozen=True)
class View:
    """What a pass sees of the partitions: which rows, which features of them, and what of y.

    ``piece`` are rows of which features are computed at a time: they may take many times the
    memory of the rows themselves.
    """

    shape: Shape
    kept: Callable[[Block], Block] | None = None
    trend: Callable[[Any], Any] | None = None
    features: Callable[[Any], Any] | None = None
    piece: int = 0

    def blocks(self, block: Block) -> Iterator[Block]:
        """A partition as it is seen, in pieces; one at least."""
        if self.kept is not None:
            block = self.kept(block)
        if self.trend is not None:
            block = replace(block, y=block.y - self.trend(block.X))
        if self.features is None:
            yield block
            return
        for k, start in enumerate(range(0, max(len(block), 1), self.piece)):
            rows = slice(start, start + self.piece)
            X = self.features(block.X[rows])
            yield Block((*block.index, k), X, block.y[rows], block.weight[rows])


@dataclass(frozen=True)
class Call:
    """The work of a pass on one partition."""

    work: Callable[..., Any]
    merge: Callable[[list[Any]], Any]
    view: View
    given: Any

    def __call__(self, block: Block) -> Any:
        parts = (self.work(seen, self.given) for seen in self.view.blocks(block))
        return reduce(lambda one, other: self.merge([one, other]), parts)


class Partitions:
    """The partitions of X, y and weights.

    Parameters
    ----------
    X : dask array (n, d) or dask dataframe
        With dense or CSR chunks; several chunks of columns are put together.
    y, sample_weight : dask array, dask series, or array in memory
        With the partitions of X; cut like X where the lengths of its chunks are known.
    plan : Plan
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any, plan: Plan) -> None:
        kind = collection_kind(X)
        if kind == "":
            raise TypeError(
                "X must be a dask array or a dask dataframe, got "
                f"{type(X).__name__}; data in memory are for the estimators of tausvm itself"
            )
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}")
        self.plan = plan
        self.names: tuple[str, ...] | None = None
        lengths: tuple[int, ...] | None = None
        if kind == "frame":
            if all(isinstance(name, str) for name in X.columns):
                self.names = tuple(X.columns)
        else:
            if X.numblocks[1] > 1:
                X = X.rechunk({1: -1})
            if not any(np.isnan(size) for size in X.chunks[0]):
                lengths = tuple(int(size) for size in X.chunks[0])
        self.n_features = int(X.shape[1])
        if self.n_features < 1:
            raise ValueError("X must have at least one column, got none")
        rows = delayed_parts(X)
        self.parts = list(
            zip(
                rows,
                _aligned("y", y, len(rows), lengths),
                _aligned("sample_weight", sample_weight, len(rows), lengths),
                strict=True,
            )
        )
        #: passes over the data so far
        self.n_passes = 0
        self._view = View(Shape(self.n_features, self.names))

    def __len__(self) -> int:
        return len(self.parts)

    def only(self, kept: Callable[[Block], Block]) -> Partitions:
        """Some of the rows, which every partition chooses from its own."""
        return self._with(replace(self._view, kept=kept))

    def beside(self, trend: Callable[[Any], Any]) -> Partitions:
        """The same rows with what a trend leaves of y."""
        return self._with(replace(self._view, trend=trend))

    def mapped(self, features: Callable[[Any], Any], n_features: int) -> Partitions:
        """The same rows with other features, computed piece by piece in every pass."""
        piece = max(1, int(self.plan.piece_megabytes * 2**20 / (8 * n_features)))
        return self._with(replace(self._view, features=features, piece=piece))

    def _with(self, view: View) -> Partitions:
        made = copy.copy(self)
        made._view = view
        return made

    def reduce(self, work: Callable[..., T], merge: Callable[[list[T]], T], given: Any) -> T:
        """The merged ``work(block, given)`` of all partitions: one pass over the data."""
        shared = delayed(Call(work, merge, self._view, given), traverse=False)
        level: list[Any] = [
            delayed(_on_worker, pure=False)(shared, index, part)
            for index, part in enumerate(self.parts)
        ]
        branch = self.plan.branch
        while len(level) > 1:
            level = [
                delayed(merge, pure=False)(level[k : k + branch])
                for k in range(0, len(level), branch)
            ]
        self.n_passes += 1
        found: T = compute(level[0], self.plan.heartbeat)
        return found


def collection_kind(X: Any) -> str:
    """ "array", "frame" or "series" for a Dask collection, else ""."""
    if not dask.is_dask_collection(X) or isinstance(X, Delayed):
        return ""
    if hasattr(X, "map_partitions"):
        return "frame" if hasattr(X, "columns") and X.ndim == 2 else "series"
    return "array" if hasattr(X, "chunks") else ""


def delayed_parts(collection: Any) -> list[Any]:
    """One delayed object a partition.

    Dask reads several files at once where few of their columns are asked for. Here that would
    leave X, y and weights with other partitions each, so it is not to.
    """
    if hasattr(collection, "npartitions") and not hasattr(collection, "chunks"):
        with dask.config.set({"optimization.tune.active": False}):
            parts = list(collection.to_delayed())
        if len(parts) != collection.npartitions:  # a version that does not know that setting
            parts = list(collection.to_delayed(optimize_graph=False))
        return parts
    return list(np.asarray(collection.to_delayed(), dtype=object).ravel())


def _aligned(name: str, given: Any, count: int, lengths: tuple[int, ...] | None) -> list[Any]:
    """The parts of y or of the weights that belong to the partitions of X."""
    if given is None:
        return [None] * count
    if collection_kind(given) in ("array", "series"):
        known = getattr(given, "chunks", None)
        if known is not None and lengths is not None and known[0] != lengths:
            given = given.rechunk({0: lengths}) if sum(known[0]) == sum(lengths) else given
        parts = delayed_parts(given)
        if len(parts) != count:
            raise ValueError(
                f"{name} must have the partitions of X, got {len(parts)} where X has {count}"
            )
        return parts
    if dask.is_dask_collection(given):
        raise TypeError(
            f"{name} must have one dimension, got a {type(given).__name__}; take one column"
        )
    given = np.asarray(given)
    if lengths is None:
        raise ValueError(
            f"{name} must be a dask collection where the lengths of X's partitions are not known, "
            f"got an array; X.compute_chunk_sizes() finds them"
        )
    if len(given) != sum(lengths):
        raise ValueError(f"{name} must have {sum(lengths)} entries, one a row, got {len(given)}")
    ends = np.cumsum(lengths)
    parts = [given[end - size : end] for end, size in zip(ends, lengths, strict=True)]
    return [delayed(part, traverse=False) for part in parts]


# ---- on the workers ----


def _on_worker(call: Call, index: int, part: Sequence[Any]) -> Any:
    # what overflows shows in the certificate
    with as_worker(), one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        return call(checked(index, part, call.view.shape))


def checked(index: int, part: Sequence[Any], shape: Shape) -> Block:
    """The rows of a partition as the cores take them; a :class:`BadPartition` says what is wrong.

    Faults of rows are told by the row's place in the partition, counted from 0.
    """

    def fault(told: str) -> BadPartition:
        return BadPartition(index, told)

    X, y, weight = part
    X = _matrix(X, shape, fault)
    n = X.shape[0]
    y = _vector("y", y, n, fault)
    if weight is None:
        return Block((index,), X, y, np.broadcast_to(1.0, n))
    weight = _vector("sample_weight", weight, n, fault)
    if n and weight.min() < 0:
        at = int(weight.argmin())
        raise fault(f"sample_weight must not be negative, got {weight[at]:g} in row {at}")
    if n and not weight.min() > 0:
        rows = np.flatnonzero(weight > 0)
        X, y, weight = X[rows], y[rows], weight[rows]
    return Block((index,), X, y, weight)


def _matrix(X: Any, shape: Shape, fault: Callable[[str], BadPartition]) -> Any:
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        names = tuple(X.columns)
        if shape.names is not None and names != shape.names:
            odd = sorted(set(map(str, names)) ^ set(shape.names))
            raise fault(
                f"X must have the {len(shape.names)} columns of the first partitions, in their "
                f"order, got {len(names)}" + (f"; they differ in {', '.join(odd[:5])}" * bool(odd))
            )
        for name, kind in zip(X.columns, X.dtypes, strict=True):
            if getattr(kind, "kind", "O") not in NUMERIC:
                raise fault(f"column {name!r} of X must hold numbers, got the type {kind}")
        X = X.to_numpy(
            dtype=np.result_type(*(_plain(kind) for kind in X.dtypes), np.float32), na_value=np.nan
        )
    if not sp.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != shape.n_features:
        got = X.shape[1] if X.ndim == 2 else f"{X.ndim} dimensions"
        raise fault(f"X must have {shape.n_features} columns, got {got}")
    if X.dtype.kind not in NUMERIC:
        raise fault(f"X must hold numbers, got the type {X.dtype}")
    kind = np.float32 if X.dtype == np.float32 else np.float64
    if sp.issparse(X):
        try:
            X = without_duplicates(well_formed(X.tocsr()).astype(kind, copy=False))
        except ValueError as error:
            raise fault(str(error)) from error
    else:
        X = np.ascontiguousarray(X, dtype=kind)
    entries = X.data if sp.issparse(X) else X
    if not np.isfinite(entries.sum()) and not np.isfinite(entries).all():
        where = np.argwhere(~np.isfinite(X.toarray() if sp.issparse(X) else X))[0]
        value = X[where[0], where[1]]
        raise fault(f"X must be finite, got {value} in row {where[0]}, column {where[1]}")
    try:
        check_size(X)
    except ValueError as error:
        raise fault(str(error)) from error
    return X


def _plain(kind: Any) -> Any:
    """The NumPy type of a column, also where pandas has one of its own."""
    return np.dtype(getattr(kind, "numpy_dtype", kind))


def _vector(name: str, given: Any, n: int, fault: Callable[[str], BadPartition]) -> Any:
    given = np.asarray(given)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.shape != (n,):
        raise fault(f"{name} must have {n} entries, one a row of X, got the shape {given.shape}")
    if given.dtype.kind not in NUMERIC:
        raise fault(f"{name} must hold numbers, got the type {given.dtype}")
    values = np.ascontiguousarray(given, dtype=np.float64)
    if not np.isfinite(values).all():
        at = int((~np.isfinite(values)).argmax())
        raise fault(f"{name} must be finite, got {values[at]} in row {at}")
    return values
