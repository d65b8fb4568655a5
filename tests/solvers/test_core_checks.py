"""The cores refuse lengths and indices that do not fit, instead of reading beyond an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tausvm._core import (
    columns,
    coordinates,
    gram,
    joint,
    lapack,
    pairs,
    rows,
    single,
    sweeps,
    validation,
)
from tausvm._core import terms as term_core


def zeros(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return np.zeros(shape, dtype=dtype)


def places(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def terms(n: int) -> np.ndarray:
    return np.repeat([[-1.0], [1.0], [0.1], [0.0], [0.0]], n, axis=1)


def pair_state(m: int = 3) -> Any:
    return pairs.PairState(zeros(m), zeros(m), terms(m), np.ones(m))


def coordinate_state(m: int = 3, **options: Any) -> Any:
    return coordinates.CoordinateState(zeros(m), zeros(m), terms(m), np.ones(m), **options)


def column_state(**changed: Any) -> Any:
    """Two columns of four samples."""
    given: dict[str, Any] = {
        "matrix": np.eye(4, dtype=np.float32),
        "y": zeros(4, dtype=np.float32), "weight": np.ones(4, dtype=np.float32),
        "ridges": np.ones((2, 2)), "allowed": np.ones(2), "share": 1.0, "offset": True,
    }  # fmt: skip
    return columns.Columns(*(given | changed).values())


def inverse(n: int = 4, numbers: int = 2) -> Any:
    """Of two columns of n samples, by one vector."""
    vectors, shrink = np.ones((n, 1), dtype=np.float32), np.ones((2, 1), dtype=np.float32)
    return columns.LowRankInverse(vectors, shrink, np.ones(numbers, dtype=np.float32))


def single_pairs(**changed: Any) -> Any:
    """The walk of one loss along two C on three samples."""
    given: dict[str, Any] = {
        "rows": np.eye(3, dtype=np.float32), "y": zeros(3), "batch": 1.0, "most": 1.0,
        "beta": zeros(1, 2, 3), "intercept": zeros(1, 2), "gap": zeros(1, 2), "primal": zeros(1, 2),
    }  # fmt: skip
    return single.SinglePairs(*(given | changed).values())


def judge(n: int = 3, table: Any = None) -> Any:
    """Two validation rows for one loss and two C on n samples."""
    table = zeros(1, 5, 2) if table is None else table
    values = np.ones((2, n), dtype=np.float32)
    return validation.Validation(lambda b: b @ values.T, values, zeros(2), table, 2, (-1.0, 1.0), 3)


def matrix(chosen: Any = None) -> Any:
    """Three dense rows of two columns."""
    return rows.Matrix(np.ones((3, 2)), None, None, chosen, 2)


def sweep(order: Any = (0, 1, 2), gains: int = 3, **changed: Any) -> None:
    """A sweep over three dense rows of two columns."""
    given: dict[str, Any] = {
        "matrix": matrix(), "y": zeros(3), "terms": terms(3), "squares": zeros(3) - 1,
        "column": 0.0, "beta": zeros(3), "w": zeros(2),
    }  # fmt: skip
    state = sweeps.Sweep(*(given | changed).values())
    state.run(np.array(order, dtype=np.int32), 0, 3, zeros(gains, dtype=np.float32))


CALLS: dict[str, Callable[[], Any]] = {
    "kernel: features": lambda: gram.distance_kernel(
        np.ones((2, 4)), np.ones((1, 3)), 1.0, True, zeros(1, 4), places(0)
    ),
    "kernel: row beyond out": lambda: gram.distance_kernel(
        np.ones((2, 4)), np.ones((1, 2)), 1.0, True, zeros(1, 4), places(1)
    ),
    "kernel: short rows": lambda: gram.distance_kernel(
        np.ones((2, 4)), np.ones((1, 2)), 1.0, True, zeros(1, 3), places(0)
    ),
    "product: beta": lambda: gram.distance_product(
        np.ones((2, 4)), np.ones((3, 2)), 1.0, True, zeros(2), zeros(4)
    ),
    "products: norms": lambda: gram.rbf_from_products(
        np.ones((2, 4)), zeros(1), zeros(4), 1.0, zeros(2, 4), places(0, 1)
    ),
    "sum of rows: slot": lambda: gram.accumulate_rows(
        np.ones((2, 4)), places(2), np.ones(1), zeros(4)
    ),
    "sum of rows: out": lambda: gram.accumulate_rows(
        np.ones((2, 4)), places(1), np.ones(1), zeros(5)
    ),
    "block: negative column": lambda: gram.gather_block(
        np.ones((2, 4)), places(0), places(-1), zeros(1, 1)
    ),
    "pairs: terms": lambda: pairs.PairState(zeros(3), zeros(3), terms(2), np.ones(3)),
    "pairs: slots": lambda: pair_state().run(np.ones((3, 3)), places(0, 1), None, 0.0, 1),
    "pairs: slot beyond rows": lambda: pair_state().run(
        np.ones((2, 3)), places(0, 1, 2), None, 0.0, 1
    ),
    "pairs: short rows": lambda: pair_state().run(np.ones((3, 2)), places(0, 1, 2), None, 0.0, 1),
    "pairs: column beyond rows": lambda: pair_state().run(
        np.ones((3, 3)), places(0, 1, 2), places(0, 1, 3), 0.0, 1
    ),
    "coordinates: diagonal": lambda: coordinates.CoordinateState(
        zeros(3), zeros(3), terms(3), np.ones(4)
    ),
    "coordinates: neighbours": lambda: coordinate_state(working_set=3, neighbours=0),
    "coordinates: working set": lambda: coordinate_state(working_set=5),
    "coordinates: watched targets": lambda: coordinate_state().watch(zeros(2), 1.0),
    "coordinates: watched loss": lambda: coordinate_state().watch(zeros(3), 1.0),
    "coordinates: slot beyond rows": lambda: coordinate_state().run(
        np.ones((2, 3), dtype=np.float32), places(0, 1, 2), None, 0.0, 1
    ),
    "single: rows": lambda: single_pairs(rows=np.ones((3, 2), dtype=np.float32)),
    "single: results": lambda: single_pairs(beta=zeros(1, 2, 4)),
    "single: gaps": lambda: single_pairs(gap=zeros(1, 3)),
    "single: terms": lambda: single_pairs().begin(0, terms(4), np.ones(2), places(0), 1.0, 1.0),
    "single: loss": lambda: single_pairs().begin(1, terms(3), np.ones(2), places(0), 1.0, 1.0),
    "single: wanted": lambda: single_pairs().begin(0, terms(3), np.ones(2), places(2), 1.0, 1.0),
    "single: starts": lambda: single_pairs().begin(
        0, terms(3), np.ones(2), places(0), 1.0, 1.0, zeros(2, 3)
    ),
    "single: validation": lambda: single_pairs().begin(
        0, terms(3), np.ones(2), places(0), 1.0, 1.0, None, judge(n=4)
    ),
    "validation: terms": lambda: judge(table=zeros(1, 5, 3)),
    "validation: problems": lambda: judge().hopeless(([0], [2])),
    "validation: values": lambda: judge().ended(([0], [1]), zeros(2, 3), zeros(2)),
    "clearly worse": lambda: validation.clearly_worse(zeros(2, 3), zeros(2), 1.0),
    "columns: matrix": lambda: column_state(matrix=np.ones((4, 3), dtype=np.float32)),
    "columns: inverse": lambda: column_state().begin(places(0), inverse(n=3)),
    "low rank: shrink": lambda: inverse(numbers=3),
    "factors: matrix": lambda: columns.FactorInverse(
        np.ones((4, 3), dtype=np.float32), np.ones(1), places(0)
    ),
    "columns: weight": lambda: column_state(weight=np.ones(3, dtype=np.float32)),
    "columns: allowed": lambda: column_state(allowed=np.ones(3)),
    "columns: a column that is not there": lambda: column_state().select(places(0, 2)),
    "columns: a column twice": lambda: column_state().select(places(1, 1)),
    "group response": lambda: joint.group_response(
        zeros(3, 2), zeros(5, 3, 1), zeros(3), 0.1, zeros(3, 2), zeros(3, 2)
    ),
    "matrix: columns": lambda: rows.Matrix(np.ones((3, 2)), None, None, None, 3),
    "matrix: integers": lambda: rows.Matrix(np.ones((3, 2), dtype=int), None, None, None, 2),
    "matrix: chosen": lambda: matrix(places(0, 3)),
    "dots: w": lambda: matrix().dots(zeros(1), zeros(3), 0, 3),
    "dots: end": lambda: matrix().dots(zeros(2), zeros(9), 0, 4),
    "sum: weight": lambda: matrix().sum(zeros(2), zeros(2), 0, 3),
    "scaled: index": lambda: matrix().scaled(places(3), zeros(3), zeros(1, 2)),
    "outer: dense": lambda: matrix().outer(places(0), zeros(3), zeros(2, 2)),
    "values: terms": lambda: term_core.values(terms(2), zeros(3)),
    "sweep: order": lambda: sweep(order=[0, 3, 1]),
    "sweep: negative order": lambda: sweep(order=[0, -1, 1]),
    "sweep: squares": lambda: sweep(squares=zeros(2)),
    "sweep: gains": lambda: sweep(gains=2),
    "sweep: w": lambda: sweep(w=zeros(1)),
    "Cholesky: not square": lambda: lapack.factorise(zeros(3, 2).copy(order="F")),
    "Cholesky: B": lambda: lapack.solve(np.eye(3, order="F"), zeros(4, 1).copy(order="F")),
    "triangle: B": lambda: lapack.solve_lower(np.eye(3, order="F"), zeros(2, 1).copy(order="F")),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_does_not_fit_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must"):
        CALLS[name]()


def test_what_fits_is_taken() -> None:
    sweep()
    assert pair_state().run(np.eye(3), places(0, 1, 2), None, 0.0, 1) == pairs.OPTIMAL
    coordinate_state(working_set=3).run(np.eye(3), places(0, 1, 2), places(0, 1, 2), 0.0, 1)
    coordinate_state(working_set=4).run(np.eye(3), places(0, 1, 2), places(0, 1, 2), 0.0, 1)


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("indices", "indptr"),
    [
        ([0, 50_000_000], [0, 1, 2]),
        ([0, 2], [0, 1, 2]),
        ([-3, 0], [0, 1, 2]),
        ([0, 1], [0, 1, 3]),
        ([0, 1], [0, 2, 1]),
        ([0, 1], [-1, 1, 2]),
    ],
)
def test_malformed_csr_is_refused(indices: list[int], indptr: list[int], index_type: Any) -> None:
    last = np.full(2, -1, dtype=np.int64)
    with pytest.raises(ValueError, match="valid CSR"):
        rows.has_duplicates(
            np.array(indices, dtype=index_type), np.array(indptr, dtype=index_type), last
        )


def test_duplicates_are_found() -> None:
    once = sp.csr_matrix([[1.0, 0.0], [2.0, 3.0]])
    indices, indptr = np.array([0, 1, 1], dtype=np.int32), np.array([0, 1, 3], dtype=np.int32)
    assert not rows.has_duplicates(once.indices, once.indptr, np.full(2, -1, dtype=np.int64))
    assert rows.has_duplicates(indices, indptr, np.full(2, -1, dtype=np.int64))


def test_a_lapack_with_long_integers_is_refused() -> None:
    typed = "__pyx_t_5scipy_6linalg_13cython_lapack_"
    lapack.check_signature("spotrf", f"void (char *, int *, {typed}s *, int *, int *)", "cirii")
    lapack.check_signature("dpotrf", "void (char *, int *, double *, int *, int *)", "cirii")
    for signature in (
        f"void (char *, int64_t *, {typed}s *, int64_t *, int64_t *)",
        f"void (char *, {typed}blas_int *, {typed}s *, int *, int *)",
        f"void (char *, int *, {typed}d *, int *, int *)",
        f"void (char *, int *, {typed}s *, int *)",
        "",
    ):
        with pytest.raises(ImportError, match="32-bit integers"):
            lapack.check_signature("spotrf", signature, "cirii")
