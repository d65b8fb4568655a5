"""Yu, Vishwanathan and Zhang: the path's table and figures, probabilities, pima, and its start."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss
from sklearn.svm import SVC

from tausvm import TauPathSVC

from .. import data, linear_data, tau_path
from ..splice_sites import splice_sites
from .experiment import Experiment, Found, Piece, Record, new_figure, save, table

Array = NDArray[np.float64]


def classifier(X: Any, lam: float) -> TauPathSVC:
    """The paper's machine: linear, with the offset as a feature."""
    return TauPathSVC(kernel="linear", C=1 / (lam * X.shape[0]), penalise_intercept=True)


# ---------------------------------------------------------------- Table 2


def table_pieces(quick: bool) -> Sequence[Piece]:
    names = ("pima",) if quick else ("pima", "inbox", "splice", "splice [-1, 1]", "generated")
    return [{"data": name} for name in names]


def run_table(data: str) -> Found:
    X, y = tau_path.load(data)
    model = classifier(X, tau_path.LAMBDA[data])
    clock = time.process_time
    seconds, _ = tau_path.best(lambda: model.fit(X, y), 5.0, 3, clock)
    return {
        "n": X.shape[0],
        "path": seconds,
        "recover": tau_path.recover_seconds(model, clock),
        "fit": tau_path.liblinear_seconds(X, y, model.C, clock),
        "kinks": int(model.n_kinks_),
        "gap": float(model.dual_gap_),
    }


def report_table(records: list[Record]) -> str:
    rows = []
    for each in records:
        paper = tau_path.PAPER.get(each["data"])
        row = [each["data"], each["n"]]
        for name, ours in (("path", "path"), ("recover", "recover"), ("liblinear", "fit")):
            printed = "" if paper is None else f" ({getattr(paper, name):g})"
            row.append(f"{each[ours]:.3g}{printed}")
        n = each["n"]
        row.append(f"{each['kinks']:,}" + ("" if paper is None else f" ({paper.kinks:,})"))
        row += [f"{each['kinks'] / (n * np.log(n)):.2f}", each["path"] / each["fit"]]
        rows.append([*row, each["fit"] / each["recover"], f"{each['gap']:.0e}"])
    head = ["data", "n", "path s", "recover s", "LIBLINEAR s", "kinks", "kinks / (n log n)"]
    text = (
        "Processor seconds, one thread; the paper's figures in brackets (its machine "
        "of 2009, in Python). `generated` has the shape of its worm data, `inbox` is one of its "
        "kind."
    )
    head += ["path / fit", "fit / recover", "largest gap"]
    return text + "\n\n" + table(head, rows)


# ---------------------------------------------------------------- Figures 1 and 2

LEVELS = np.linspace(0.0, 1.0, 41)


def figure_pieces(quick: bool) -> Sequence[Piece]:
    names = (
        ("pima",) if quick else ("pima", "u00", "u01", "u00 to u01", "spambase", "splice", "sites")
    )
    return [{"data": name} for name in names]


def parts(name: str) -> tuple[Any, Array, Any, Array, float]:
    """Training and test parts, and the paper's λ for such data."""
    if name in ("u00", "u01"):
        X, y = linear_data.inbox(name)
    elif name == "u00 to u01":
        return *linear_data.inbox("u00"), *linear_data.inbox("u01"), 1e-6
    elif name == "sites":
        X, y = splice_sites(20_000)
        return X[:10_000], y[:10_000], X[10_000:], y[10_000:], 1e-2
    else:
        X, y = data.load(name, "unit")
    order = np.random.default_rng(0).permutation(len(y))
    cut = 668 if name == "pima" else len(y) // 2
    lam = 1e-3 if name == "pima" else 1e-2 if name == "splice" else 1e-6
    lam = 1e-4 if name == "spambase" else lam
    train, test = order[:cut], order[cut:]
    return X[train], y[train], X[test], y[test], lam


def run_figure(data: str) -> Found:
    """Rates on test rows at every level, and how many rows are at the margin."""
    X, y, X_test, y_test, lam = parts(data)
    model = classifier(X, lam).fit(X, y)
    labels = model.predict(X_test, tau=LEVELS)
    truth = y_test[:, None] > 0
    right = (labels > 0) == truth
    margin = [len(model.sets(tau).margin) / len(y) for tau in LEVELS]
    return {
        "n": len(y),
        "lambda": lam,
        "true positives": right[truth[:, 0]].mean(axis=0),
        "true negatives": right[~truth[:, 0]].mean(axis=0),
        "accuracy": right.mean(axis=0),
        "margin": margin,
        "positive": float(truth.mean()),
    }


def report_figure(records: list[Record]) -> str:
    rows = []
    for each in records:
        margin, accuracy = np.array(each["margin"]), np.array(each["accuracy"])
        inner = (LEVELS > 0) & (LEVELS <= 0.9)
        falls = np.diff(each["true positives"]).max() <= 1e-12
        rows.append(
            [
                each["data"],
                each["n"],
                f"{each['lambda']:g}",
                f"{100 * margin[0]:.2f}",
                f"{100 * margin[inner].min():.2f} to {100 * margin[inner].max():.2f}",
                f"{accuracy[inner].min():.3f} to {accuracy[inner].max():.3f}",
                f"{accuracy[0]:.3f} ({each['positive']:.3f})",
                "yes" if falls else "not everywhere",
            ]
        )
    text = (
        "Test rows at 41 levels (Figure 2), after Figure 1's boundaries of generated points. The "
        "paper has 0.28 % of its spam rows at the margin at τ = 0 and “about 0.32 %” from there to "
        "0.9, and says that this "
        "is why accuracy hardly changes; accuracy at τ = 0 is the share of positives, as it must "
        "be."
    )
    head = ["data", "training rows", "λ", "margin % at τ = 0", "margin % for 0 < τ ≤ 0.9"]
    head += ["accuracy there", "accuracy at τ = 0 (positives)", "true positives fall with τ"]
    return text + "\n\n" + table(head, rows)


def draw_figure(records: list[Record], file: Path) -> None:
    columns = max(3, len(records))
    figure, axes = new_figure(2, columns, (3.2 * columns, 6.0))
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-0.8, 1.0, (60, 2)), rng.normal(0.8, 1.0, (60, 2))])
    y = np.repeat([-1, 1], 60)
    model = TauPathSVC(kernel="linear", C=1.0).fit(X, y)
    ends = np.array([-3.5, 3.5])
    for ax, tau in zip(axes[0], (0.1, 0.5, 0.9), strict=False):
        ax.plot(*X[y < 0].T, "r.", *X[y > 0].T, "bs", ms=4)
        (a, b), c = np.ravel(model.coef(tau)), float(np.ravel(model.intercept(tau))[0])
        ax.plot(ends, -(a * ends + c) / b, "k")
        ax.set(xlim=ends, ylim=ends, title=f"Figure 1: τ = {tau:g}")
    for ax in axes[0, 3:]:
        ax.set_axis_off()
    for ax, each in zip(axes[1], records, strict=False):
        for what in ("true positives", "true negatives", "accuracy"):
            ax.plot(LEVELS, each[what], label=what)
        ax.plot(LEVELS, each["margin"], color="0.5", lw=0.8, label="margin")
        ax.set(xlabel="τ", title=each["data"], ylim=(-0.03, 1.03))
    axes[1, 0].legend(frameon=False, fontsize=7)
    save(figure, file)


# ---------------------------------------------------------------- probabilities


def probability_pieces(quick: bool) -> Sequence[Piece]:
    names = ("pima",) if quick else ("pima", "spambase", "splice", "u00")
    costs = (1.0,) if quick else (0.01, 0.1, 1.0, 10.0, 100.0)
    rows = 80 if quick else 400
    return [{"data": name, "C": C, "rows": rows} for name in names for C in costs]


def run_probability(data: str, C: float, rows: int) -> Found:
    """Brier scores of flip levels and of sigmoids over three splits."""
    X, y, X_test, y_test, _ = parts(data)
    X_all, y_all = _stacked(X, X_test), np.concatenate([y, y_test])
    given: dict[str, Any] = {"kernel": "linear"} if sp.issparse(X) else {"gamma": 1.0 / X.shape[1]}
    scores: dict[str, list[float]] = {"path": [], "sigmoid": [], "share": [], "sigmoid of path": []}
    for split in range(3):
        order = np.random.default_rng(split).permutation(len(y_all))
        train, test = order[:rows], order[rows : rows + 1000]
        labels = y_all[train] > 0
        truth = y_all[test] > 0
        path = TauPathSVC(C=C, **given).fit(X_all[train], labels)
        flips = path.predict_proba(X_all[test])[:, 1]
        scores["path"].append(brier_score_loss(truth, flips))
        platt = CalibratedClassifierCV(SVC(C=C, **given), method="sigmoid", cv=5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            platt.fit(X_all[train], labels)
        scores["sigmoid"].append(brier_score_loss(truth, platt.predict_proba(X_all[test])[:, 1]))
        both = CalibratedClassifierCV(TauPathSVC(C=C, **given), method="sigmoid", cv=5)
        both.fit(X_all[train], labels)
        scores["sigmoid of path"].append(
            brier_score_loss(truth, both.predict_proba(X_all[test])[:, 1])
        )
        scores["share"].append(brier_score_loss(truth, np.full(len(truth), labels.mean())))
    means = {side: float(np.mean(values)) for side, values in scores.items()}
    apart = np.array(scores["path"]) - scores["sigmoid"]
    return {**means, "difference": float(apart.mean()), "deviation": float(apart.std(ddof=1))}


def _stacked(first: Any, second: Any) -> Any:
    return (
        sp.vstack([first, second], format="csr")
        if sp.issparse(first)
        else np.vstack([first, second])
    )


def report_probability(records: list[Record]) -> str:
    rows = [
        [
            each["data"],
            each["C"],
            each["path"],
            each["sigmoid"],
            f"{each['difference']:+.4f} ± {each['deviation']:.4f}",
            each["sigmoid of path"],
            each["share"],
        ]
        for each in records
    ]
    better = sum(each["difference"] <= 0 for each in records)
    text = (
        f"Brier scores on test rows, means of three splits of {records[0].piece['rows']} training "
        "rows: levels of the flip, from one fit, against Platt's sigmoid on five folds of an "
        f"`SVC` with the same C and kernel. The path is at least as good in {better} of "
        f"{len(records)} places. *Sigmoid of path* calibrates the path's own scores on five folds."
    )
    head = ["data", "C", "flip levels", "sigmoid", "difference", "sigmoid of path", "share alone"]
    return text + "\n\n" + table(head, rows)


# ---------------------------------------------------------------- pima


def pima_pieces(quick: bool) -> Sequence[Piece]:
    scalings = ("over max",) if quick else ("[-1, 1]", "over max", "standard", "unit rows", "raw")
    lambdas = (1e-3,) if quick else (1e-1, 1e-2, 1e-3, 1e-4)
    return [{"scaling": scaling, "lambda_": lam} for scaling in scalings for lam in lambdas]


def run_pima(scaling: str, lambda_: float) -> Found:
    """Kinks of the path of the first 668 rows under a scaling that keeps zeros or does not."""
    X, y = data.load("pima", "raw")
    match scaling:
        case "[-1, 1]" | "standard":
            X, y = data.load("pima", "unit" if scaling == "[-1, 1]" else "standard")
        case "over max":
            X = X / X.max(axis=0)
        case "unit rows":
            X = X / np.linalg.norm(X, axis=1)[:, None]
    X, y = X[:668], np.where(y[:668] > 0, 1, -1)
    model = classifier(X, lambda_).fit(X, y)
    apart = np.diff(model.taus_)
    return {
        "kinks": int(model.n_kinks_),
        "apart": int(np.count_nonzero(apart > 1e-4)),
        "zeros": float((X == 0).mean()),
        "gap": float(model.dual_gap_),
    }


def report_pima(records: list[Record]) -> str:
    rows = [
        [each["scaling"], each["lambda_"], f"{each['zeros']:.1%}", each["kinks"], each["apart"]]
        for each in records
    ]
    text = (
        "The paper's diabetes data has 13.4 % zeros and 1,886 kinks at λ = 10⁻³. 12.5 % of the "
        "entries of our first 668 rows are 0, so that its features were left as they are or "
        "divided by a number each, not moved to [−1, 1]. Kinks, and those that are at least 10⁻⁴ "
        "away from the one before."
    )
    return text + "\n\n" + table(["scaling", "λ", "zeros", "kinks", "of these apart"], rows)


# ---------------------------------------------------------------- the start


def start_pieces(quick: bool) -> Sequence[Piece]:
    names = ("pima",) if quick else ("pima", "spambase", "splice", "u00")
    return [{"data": name, "rows": 200 if quick else 1500} for name in names]


def run_start(data: str, rows: int) -> Found:
    """L-BFGS-B for the start and conjugate gradients for the direction, beside the whole walk."""
    X, y, _, _, lam = parts(data)
    X, y = X[:rows], y[:rows]
    n, C = len(y), 1.0 / (lam * len(y))
    signs = np.where(y > 0, 1.0, -1.0)
    ones = np.ones((n, 1))
    wide = sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])
    started = time.process_time()
    model = classifier(X, lam).fit(X, signs)
    found: Found = {"n": n, "kinks": int(model.n_kinks_), "path s": time.process_time() - started}
    for tau in (0.0, 0.5):
        upper = np.where(signs > 0, 2 * (1 - tau) * C, 2 * tau * C)

        def value(a: Array) -> tuple[float, Array]:
            w = wide.T @ (signs * a)
            pulled = signs * (wide @ w)
            return float(0.5 * w @ w - a.sum()), pulled - 1.0

        started = time.process_time()
        result = minimize(
            value,
            np.zeros(n),
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(np.zeros(n), upper, strict=True)),
            options={"maxiter": 3000, "maxfun": 6000, "ftol": 1e-14, "gtol": 1e-8 * C},
        )
        seconds = time.process_time() - started
        w = wide.T @ (signs * result.x)
        primal = 0.5 * w @ w + (upper * np.maximum(0.0, 1.0 - signs * (wide @ w))).sum()
        gap = (primal + result.fun) / max(abs(primal), abs(result.fun), 1e-300)
        found[f"L-BFGS-B at {tau:g}"] = [seconds, float(gap), int(result.nit)]
    found.update(directions(model, wide, signs))
    return found


def directions(model: TauPathSVC, wide: Any, signs: Array) -> Found:
    """Seconds of a direction: conjugate gradients on Q_MM, and a Cholesky factor made anew."""
    seconds: dict[str, list[float]] = {"cg": [], "cholesky": []}
    sizes, unsolved = [], 0
    for tau in np.linspace(0.05, 0.95, 19):
        margin = np.asarray(model.sets(tau).margin)
        if len(margin) < 2:
            continue
        sizes.append(len(margin))
        rows = wide[margin]
        Z = (
            rows.multiply(signs[margin, None]).tocsr()
            if sp.issparse(rows)
            else rows * signs[margin, None]
        )
        right = np.asarray(Z @ (wide.T @ np.ones(len(signs)))).ravel()
        started = time.process_time()
        operator = scipy.sparse.linalg.LinearOperator(
            (len(margin), len(margin)), matvec=lambda v, Z=Z: Z @ (Z.T @ v), dtype=np.float64
        )
        _, status = scipy.sparse.linalg.cg(operator, right, rtol=1e-8, maxiter=10 * len(margin))
        seconds["cg"].append(time.process_time() - started)
        unsolved += status != 0
        started = time.process_time()
        Q = Z @ Z.T
        Q = Q.toarray() if sp.issparse(Q) else Q
        Q[np.diag_indices_from(Q)] += 1e-12 * Q.trace() / len(Q)
        scipy.linalg.cho_solve(scipy.linalg.cho_factor(Q), right)
        seconds["cholesky"].append(time.process_time() - started)
    return {
        "free": float(np.mean(sizes)),
        "cg s": float(np.mean(seconds["cg"])),
        "cholesky s": float(np.mean(seconds["cholesky"])),
        "cg unsolved": unsolved / max(len(sizes), 1),
    }


def report_start(records: list[Record]) -> str:
    rows = []
    for each in records:
        kink = each["path s"] / max(each["kinks"], 1)
        half = each["L-BFGS-B at 0.5"]
        rows.append(
            [
                each["data"],
                each["n"],
                each["path s"],
                each["kinks"],
                f"{each['L-BFGS-B at 0'][0]:.3g} ({each['L-BFGS-B at 0'][1]:.0e})",
                f"{half[0]:.3g} ({half[1]:.0e}, {half[2]:,} steps)",
                each["free"],
                f"{1e6 * kink:.0f}",
                f"{1e6 * each['cg s']:.0f} ({each['cg unsolved']:.0%})",
                f"{1e6 * each['cholesky s']:.0f}",
            ]
        )
    text = (
        "The paper starts by L-BFGS-B and finds each direction by conjugate gradients. Processor "
        "seconds of the whole walk here, start included, and of SciPy's L-BFGS-B for the start "
        "alone, with the relative duality gap that it ends at; then microseconds of a whole kink "
        "here, of conjugate gradients to 10⁻⁸ for one direction (in brackets how many of 19 "
        "levels did not get there), and of a new Cholesky factor."
    )
    head = ["data", "n", "whole path s", "kinks", "L-BFGS-B at τ = 0, s (gap)", "at τ = ½, s (gap)"]
    head += ["free points", "µs a kink here", "µs of CG", "µs of a new factor"]
    return text + "\n\n" + table(head, rows)


EXPERIMENTS = (
    Experiment(
        "path-table-2", "path", "Tables 1 and 2: path, recovery and fit", table_pieces, run_table,
        report_table,
    ),
    Experiment(
        "path-figures", "path", "Figures 1 and 2, and the shares at the margin", figure_pieces,
        run_figure, report_figure, draw_figure,
    ),
    Experiment(
        "path-probabilities", "path", "Sections 1 and 2: probabilities beside Platt's sigmoid",
        probability_pieces, run_probability, report_probability,
    ),
    Experiment(
        "path-pima", "path", "Table 2: the kinks of pima", pima_pieces, run_pima, report_pima,
    ),
    Experiment(
        "path-start", "path", "Section 6: L-BFGS-B for the start, CG for directions",
        start_pieces, run_start, report_start,
    ),
)  # fmt: skip
