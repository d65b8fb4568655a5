"""Paths of real data: certified, and equal to fits at single levels."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from tausvm import TauPathSVC, TauSVC

pandas = pytest.importorskip("pandas")

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("TAUSVM_DATA", ROOT.parent / "shared" / "data"))

#: name, λ
SETS = {"pima": 1e-3, "splice": 1e-2, "spambase": 1e-3, "inbox": 1e-6}
FILES = {
    "pima": "pima.csv",
    "splice": "splice.csv",
    "spambase": "spambase.csv.gz",
    "inbox": "ecml2006_spam_a_u00.svm.gz",
}


def load(name, rows=None):
    file = FOLDER / FILES[name]
    if not file.exists():
        pytest.skip(f"no {file}: set TAUSVM_DATA to the folder of the benchmark data")
    if name == "inbox":
        X, y = load_svmlight_file(str(file), n_features=106780)
    else:
        values = pandas.read_csv(file).to_numpy(dtype=np.float64)
        X, y = values[:, :-1], values[:, -1]
        X = 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1
    if name == "pima":
        return X[:668], y[:668]
    chosen = np.random.default_rng(0).permutation(len(y))[:rows]
    return X[chosen], y[chosen]


def check(name, rows, levels, single_levels):
    X, y = load(name, rows)
    C = 1 / (SETS[name] * len(y))
    model = TauPathSVC(kernel="linear", C=C, penalise_intercept=True).fit(X, y)
    taus = np.random.default_rng(1).uniform(size=levels)
    gaps = [model.certificate(tau).dual_gap for tau in taus]
    assert max(gaps) <= 1e-6
    assert model.dual_gap_ <= 1e-6
    assert (model.predict(X, 0.0) == 1).all()
    assert (model.predict(X, 1.0) == -1).all()
    free = TauPathSVC(kernel="linear", C=C).fit(X, y)
    for tau in single_levels:
        single = TauSVC(tau=tau, kernel="linear", C=C, tol=1e-7).fit(X, y)
        found = free.certificate(tau)
        assert found.dual_gap <= 1e-6
        assert found.primal_objective == pytest.approx(single.result_.primal_objective, rel=2e-6)


@pytest.mark.parametrize(
    ("name", "rows"), [("pima", None), ("splice", 500), ("spambase", 500), ("inbox", 200)]
)
def test_small(name, rows):
    check(name, rows, 60, (0.2, 0.7))


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_whole(name):
    check(name, None, 1000, (0.25, 0.6))
