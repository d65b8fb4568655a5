"""Fans of quantiles and expectiles on real data, and a report: ``python -m tausvm.demo``.

The data are scikit-learn's diabetes study, which it ships: 442 patients, ten measurements
each, and the progression of the disease a year later.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from . import ExpectileSVR, QuantileSVR
from .metrics import coverage, mean_expectile_loss
from .plotting import FanDisplay
from .plotting.support import require_pyplot
from .report import write_report

Array = NDArray[np.float64]

TAUS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
#: the body mass index among the ten features
BMI = 2
TOL = 1e-6
#: what scikit-learn's short names of the features mean
FEATURES = {
    "age": "age (years)",
    "bmi": "body mass index (kg/m²)",
    "bp": "mean blood pressure (mmHg)",
    "s1": "total cholesterol",
    "s2": "low-density lipoproteins",
    "s3": "high-density lipoproteins",
    "s4": "cholesterol ratio",
    "s5": "log of triglycerides",
    "s6": "blood sugar",
}

COLUMNS = ("level", "loss", "coverage", "support", "gap", "seconds")


@dataclass(frozen=True)
class Kind:
    """One of the two families of levels: how it is fitted on one and on all features."""

    name: str
    loss_name: str
    meaning: str
    middle: str
    one_feature: Any
    all_features: Any

    def loss(self, y: Array, levels: Array) -> list[float]:
        """The mean loss of each level."""
        if self.loss_name == "pinball":
            return [
                float(mean_pinball_loss(y, level, alpha=tau))
                for tau, level in zip(TAUS, levels.T, strict=True)
            ]
        return list(np.atleast_1d(mean_expectile_loss(y, levels, tau=TAUS)))


def kinds() -> tuple[Kind, Kind]:
    """Quantiles and expectiles with C and γ from five-fold grids of powers of about three.

    On all features: the best for the patients that the table's models are fitted to, so that
    its scores are held out. On one feature: near the best for all patients, and smooth enough
    that no levels cross in the picture.
    """
    return (
        Kind(
            "quantiles",
            "pinball",
            "a share τ of the patients lies below",
            "median",
            QuantileSVR(tau=TAUS, C=1.0, gamma=0.03, tol=TOL),
            QuantileSVR(tau=TAUS, C=4.0, gamma=0.01, tol=TOL),
        ),
        Kind(
            "expectiles",
            "asymmetric squared",
            "squared distances above weigh τ, below 1 − τ",
            "mean",
            ExpectileSVR(tau=TAUS, C=3.0, gamma=0.03, tol=TOL),
            ExpectileSVR(tau=TAUS, C=1.0, gamma=0.03, tol=TOL),
        ),
    )


@dataclass(frozen=True)
class Split:
    """Two thirds of the patients to fit, the last third to score."""

    X_train: Array
    X_test: Array
    y_train: Array
    y_test: Array

    @classmethod
    def of(cls, X: Array, y: Array) -> Split:
        return cls(*train_test_split(X, y, test_size=1 / 3, random_state=0))

    def fitted(self, kind: Kind) -> Pipeline:
        """The kind's model on all features."""
        return make_pipeline(StandardScaler(), kind.all_features).fit(self.X_train, self.y_train)


def table(model: Pipeline, kind: Kind, split: Split) -> Iterator[tuple[str, ...]]:
    """A row a level, scored on the patients that were set aside."""
    y_test, levels = split.y_test, model.predict(split.X_test)
    losses, covers = kind.loss(y_test, levels), np.atleast_1d(coverage(y_test, levels))
    for tau, loss, covered, result in zip(TAUS, losses, covers, model[-1].result_, strict=True):
        yield (
            f"{tau:.2f}",
            f"{loss:.4g}",
            f"{covered:.1%}",
            f"{np.count_nonzero(result.beta)}",
            f"{result.dual_gap:.0e}",
            f"{result.seconds:.3f}",
        )


def draw(X: Array, y: Array, path: Path) -> None:
    """Both fans against the body mass index, side by side."""
    plt = require_pyplot("the demo's picture")
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), sharey=True, layout="constrained")
    bmi = X[:, [BMI]]
    for kind, ax in zip(kinds(), axes, strict=True):
        model = make_pipeline(StandardScaler(), kind.one_feature).fit(bmi, y)
        fan = FanDisplay.from_estimator(
            model, bmi, y, ax=ax, feature_name="body mass index (kg/m²)"
        )
        fan.labels_[TAUS.index(0.5)].set_text(kind.middle)
        ax.set_title(f"{kind.name.capitalize()}: {kind.meaning}", loc="left", fontsize=11)
    axes[0].set_ylabel("progression after one year (score)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, write the picture and the report, say where they are; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tausvm.demo", description=__doc__)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("demo/fan.png"),
        help="the picture; the report goes beside it",
    )
    output: Path = parser.parse_args(arguments).output
    with threadpool_limits(1, user_api="blas"):  # small matrices: threads would only wait
        return show(output)


def show(output: Path) -> int:
    """The demo itself."""
    study = load_diabetes(scaled=False)
    X, y = study.data, study.target
    split = Split.of(X, y)
    print(f"Diabetes: {len(y)} patients, {X.shape[1]} features; loss and coverage held out\n")
    models = {kind.name: split.fitted(kind) for kind in kinds()}
    for kind in kinds():
        print(f"{kind.name} ({kind.loss_name} loss)")
        for row in (COLUMNS, *table(models[kind.name], kind, split)):
            print("".join(cell.rjust(10) for cell in row))
        print()
    try:
        draw(X, y, output)
    except ImportError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Picture: {output.resolve()}")
    page = output.with_name("report.html")
    write_report(
        models["quantiles"],
        split.X_test,
        split.y_test,
        page,
        title="Progression of diabetes after one year",
        target_name="progression after one year (score)",
        feature_names=[FEATURES.get(name, name) for name in study.feature_names],
        data_name="scikit-learn's diabetes study, patients set aside",
        fitted_rows=0,
    )
    print(f"Report:  {page.resolve()} (open it in a browser)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
