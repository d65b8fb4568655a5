"""The findings of the linear-SVR paper (Ho and Lin, section 4), as printed tables.

    python -m benchmarks.linear_findings            # small data, about two minutes
    python -m benchmarks.linear_findings --rows 16087

Data are TFIDF-like rows of fewer features and the spam inbox u00, unit rows unless a table says
otherwise; L1 loss with C = 1, ε = 0.1 unless it names another. Seconds are processor seconds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_squared_error

from tausvm import SVR, LinearSVR
from tausvm.losses import EpsilonInsensitive, Loss, SquaredEpsilonInsensitive
from tausvm.metrics import squared_correlation
from tausvm.operators import LinearOperator
from tausvm.solvers import Problem, SolverOptions, solve
from tausvm.solvers.linear import DualCD

from .linear_data import inbox, linear_target, msd, onto, sparse_rows, unit_rows

Array = NDArray[np.float64]
#: the paper's algorithm visits every row equally often
PAPER = DualCD(adaptive=False)


def processor_seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = run()
    return time.process_time() - started, result


def problem(X: Any, y: Array, loss: Loss, C: float = 1.0) -> Problem:
    terms = loss.dual_terms(y[:1], np.full(1, C)).shared(len(y))
    return Problem(LinearOperator(X), y, terms, offset=False)


def algorithm_2(X: sp.csr_matrix, y: Array, C: float, epsilon: float, tol: float) -> float:
    """Steps of the paper's Algorithm 2, L1 loss, relative to those of Algorithm 4's passes.

    Plain Python over α⁺ and α⁻ as 2n variables; what it returns is the number of rows visited
    until the relative duality gap is ``tol``, in units of n.
    """
    n = len(y)
    dense = [
        (X.indices[a:b], X.data[a:b]) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]
    squares = np.array([values @ values for _, values in dense])
    alpha, u = np.zeros(2 * n), np.zeros(X.shape[1])
    rng = np.random.default_rng(0)
    visited = 0
    while True:
        for k in rng.permutation(2 * n):
            i, sign = k % n, 1.0 if k < n else -1.0
            at, values = dense[i]
            gradient = sign * (values @ u[at] - y[i]) + epsilon
            visited += 1
            fresh = min(max(alpha[k] - gradient / squares[i], 0.0), C) if squares[i] > 0 else 0.0
            if fresh != alpha[k]:
                u[at] += sign * (fresh - alpha[k]) * values
                alpha[k] = fresh
        beta = alpha[:n] - alpha[n:]
        excess = np.maximum(np.abs(y - X @ u) - epsilon, 0.0)
        primal = 0.5 * u @ u + C * excess.sum()
        dual = y @ beta - 0.5 * u @ u - epsilon * np.abs(beta).sum()
        if primal - dual <= tol * primal or visited > 400 * n:
            return visited / n


def test_error(model: Any, X: Any, y: Array) -> list[float]:
    """MSE on the last fifth of the rows after a fit to the others, and that fit's seconds."""
    cut = int(0.8 * len(y))
    seconds, _ = processor_seconds(lambda: model.fit(X[:cut], y[:cut]))
    return [mean_squared_error(y[cut:], model.predict(X[cut:])), seconds]


def table(title: str, head: list[str], lines: list[list[Any]]) -> None:
    print(f"\n## {title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for line in lines:
        cells = [f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in line]
        print("| " + " | ".join(cells) + " |")


def algorithms(sets: dict[str, tuple[Any, Array]], small: int) -> None:
    """4.2: Algorithm 2 against Algorithm 4, with and without shrinking."""
    lines = []
    for name, (X, y) in sets.items():
        part, target = X[:small], y[:small]
        few = problem(part, target, EpsilonInsensitive(0.1))
        passes = solve(
            few, replace(PAPER, shrinking=False), SolverOptions(tol=1e-2, max_iter=400)
        ).n_iter
        rows_2 = algorithm_2(part, target, 1.0, 0.1, 1e-2)
        whole = problem(X, y, EpsilonInsensitive(0.1))
        seconds = [
            processor_seconds(
                lambda s=shrinking, w=whole: solve(
                    w, replace(PAPER, shrinking=s), SolverOptions(tol=1e-4, max_iter=2000)
                )
            )[0]
            for shrinking in (False, True)
        ]
        lines.append([name, f"{rows_2:.0f} n", f"{passes} n", *seconds, seconds[0] / seconds[1]])
    table(
        "Algorithm 2 and Algorithm 4, shrinking (L1 loss)",
        [
            f"data (first {small} rows for Algorithm 2)",
            "Algorithm 2: rows visited to gap 1e-2",
            "Algorithm 4: rows visited",
            "Algorithm 4 without shrinking, s to 1e-4",
            "with shrinking, s",
            "ratio",
        ],
        lines,
    )


def newton_and_descent(sets: dict[str, tuple[Any, Array, Any]]) -> None:
    """4.4: Newton against coordinate descent, normalised and not (L2 loss)."""
    lines = []
    for name, (X, y, unit) in sets.items():
        for rows, data in (("raw", X), ("normalised", unit)):
            line: list[Any] = [name, rows]
            for solver in ("newton", PAPER):
                for tol in (1e-2, 1e-6):
                    posed = problem(data, y, SquaredEpsilonInsensitive(0.1))
                    options = SolverOptions(tol=tol, time_limit=20.0)
                    seconds, result = processor_seconds(
                        lambda p=posed, s=solver, o=options: solve(p, s, o)
                    )
                    solved = result.dual_gap <= tol
                    line.append(seconds if solved else f"gap {result.dual_gap:.0e} in 20 s")
            lines.append(line)
    table(
        "Newton and coordinate descent, seconds to a relative gap (L2 loss)",
        ["data", "rows", "newton 1e-2", "newton 1e-6", "dual_cd 1e-2", "dual_cd 1e-6"],
        lines,
    )


def bias(sets: dict[str, tuple[Any, Array]]) -> None:
    """4.5: with and without the bias term; the free offset beside it."""
    lines = []
    for name, (X, y) in sets.items():
        cut = int(0.8 * len(y))
        line: list[Any] = [name]
        for given in (
            {"fit_intercept": False},
            {"intercept_scaling": 1.0},
            {"intercept_scaling": None},
        ):
            model = LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1, **given)
            prediction = model.fit(X[:cut], y[:cut]).predict(X[cut:])
            line.append(
                f"{mean_squared_error(y[cut:], prediction):.4f} "
                f"({squared_correlation(y[cut:], prediction):.3f})"
            )
        lines.append(line)
    table(
        "Test MSE (squared correlation) without bias, with, and with a free offset (L2 loss)",
        ["data", "none", "penalised column", "free offset"],
        lines,
    )


def linear_and_rbf(sets: dict[str, tuple[Any, Array]], most: int) -> None:
    """4.3: linear against RBF."""
    lines = []
    for name, (X, y) in sets.items():
        X, y = X[:most], y[:most]
        line: list[Any] = [name]
        for model in (LinearSVR(epsilon=0.1, C=4.0), SVR(epsilon=0.1, C=4.0, gamma=1.0)):
            line += test_error(model, X, y)
        lines.append([*line, line[4] / line[2]])
    table(
        f"Linear and RBF, up to {most} rows (C = 4, ε = 0.1, γ = 1)",
        ["data", "linear MSE", "linear s", "RBF MSE", "RBF s", "ratio of seconds"],
        lines,
    )


def losses(sets: dict[str, tuple[Any, Array]]) -> None:
    """Table 5: L1 loss, L2 loss and least squares (ε = 0)."""
    lines = []
    for name, (X, y) in sets.items():
        line: list[Any] = [name]
        for loss, epsilon in (
            ("epsilon_insensitive", 0.1),
            ("squared_epsilon_insensitive", 0.1),
            ("squared_epsilon_insensitive", 0.0),
        ):
            model = LinearSVR(loss=loss, epsilon=epsilon, tol=1e-3)
            line += test_error(model, X, y)
        lines.append(line)
    table(
        "L1 loss, L2 loss and least squares",
        ["data", "L1 MSE", "s", "L2 MSE", "s", "least squares MSE", "s"],
        lines,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3000, help="of the TFIDF-like set")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    words = sparse_rows(options.rows, 30_000, 300, seed=2)
    scores = onto(linear_target(words, 3, 0.7), -7.9, -0.52)
    mails, labels = inbox("u00")
    order = np.random.default_rng(0).permutation(len(labels))
    mails, labels = mails[order], labels[order]
    songs, years = msd(10 * options.rows)
    unit = {
        "tfidf-like": (unit_rows(words), scores),
        "spam u00": (unit_rows(mails), labels),
        "msd-like": (unit_rows(songs), years),
    }
    sparse = {name: unit[name] for name in ("tfidf-like", "spam u00")}
    algorithms(sparse, 600)
    newton_and_descent(
        {
            "tfidf-like": (words, scores, unit["tfidf-like"][0]),
            "spam u00": (mails, labels, unit["spam u00"][0]),
            "msd-like": (songs, years, unit["msd-like"][0]),
        }
    )
    bias(unit)
    linear_and_rbf(unit, 2000)
    losses(unit)


if __name__ == "__main__":
    main()
