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
    parts,
    rows,
    single,
    sweeps,
    validation,
)
from tausvm._core import terms as term_core
from tausvm.losses.terms import DualTerms
from tausvm.solvers.many import Asked, Family, Goal, Many, PartResults, Stop


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


def part(n: int = 3, **changed: Any) -> Any:
    """Three samples of one loss, two rows that judge, in a matrix of five."""
    given: dict[str, Any] = {
        "y": zeros(n), "terms": terms(n)[None], "constants": np.ones(1), "offset": True,
        "weight": np.ones(n), "rows": np.arange(n + 2), "judged": judged(),
    }  # fmt: skip
    return parts.Part(*(given | changed).values())


def judged(table: Any = None) -> Any:
    """Two validation rows of one loss."""
    table = zeros(1, 5, 2) if table is None else table
    return validation.Judged(zeros(2), table, (-1.0, 1.0))


def judge(costs: int = 2, rows: int = 2) -> Any:
    """They judge two C."""
    return validation.Validation(judged(), np.full((1, costs, rows), np.nan), 3.0)


def solve_part(of: Any, matrix: Any = None, core: Any = None, **changed: Any) -> None:
    """Two C of a part."""
    given: dict[str, Any] = {"costs": np.ones(2), "wanted": np.ones((1, 2), dtype=bool)}
    asked = Asked(**(given | changed), goal=Goal(), stop=Stop())
    family = Family(None, zeros(3), [DualTerms(terms(3))], asked.costs, judged=judged())
    matrix = np.eye(5, dtype=np.float32) if matrix is None else matrix
    (core or single.SinglePairs(Many(), 1.0)).solve([of], matrix, asked, PartResults.of([family]))


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
    "product: at": lambda: gram.distance_product(
        np.ones((2, 4)), np.ones((3, 2)), 1.0, True, zeros(3), zeros(4), zeros(3), zeros(3)
    ),
    "product: back": lambda: gram.distance_product(
        np.ones((2, 4)), np.ones((3, 2)), 1.0, True, zeros(3), zeros(4), zeros(4), zeros(2)
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
    "part: terms": lambda: part(terms=terms(4)[None]),
    "part: constants": lambda: part(constants=np.ones(2)),
    "part: weight": lambda: part(weight=np.ones(2)),
    "part: rows": lambda: part(rows=np.arange(4)),
    "part: judged": lambda: part(judged=validation.Judged(zeros(2), zeros(2, 5, 2), (-1.0, 1.0))),
    "parts: row beyond the matrix": lambda: solve_part(part(rows=np.arange(1, 6))),
    "parts: matrix": lambda: solve_part(part(), matrix=np.ones((5, 4), dtype=np.float32)),
    "parts: matrix of its own": lambda: solve_part(
        part(rows=None), matrix=np.ones((4, 3), dtype=np.float32)
    ),
    "parts: wanted": lambda: solve_part(part(), wanted=np.ones((2, 2), dtype=bool)),
    "parts: results": lambda: solve_part(part(n=4)),
    "parts: squared": lambda: solve_part(part(weight=None), core=columns.Columns(Many())),
    "validation: terms": lambda: judged(table=zeros(1, 5, 3)),
    "validation: losses": lambda: judge(rows=1),
    "validation: problems": lambda: judge().hopeless(([0], [2])),
    "validation: values": lambda: judge().ended(([0], [1]), zeros(2, 2)),
    "race: rows": lambda: validation.in_the_race(zeros(2, 3, 1, 2, 4), places(4, 5, 4), 1.0, 0.0),
    "clearly worse": lambda: validation.clearly_worse(zeros(2, 3), zeros(2), 1.0),
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
