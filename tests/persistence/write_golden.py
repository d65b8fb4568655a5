"""Write models of this version, with what they predict, for later versions to load.

    python -m tests.persistence.write_golden tests/persistence/golden/<version>

A folder, once written, is never written again: its files are what users have.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tausvm
from tausvm.persistence import save

TAUS = [0.1, 0.5, 0.9]


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training rows, targets and new rows."""
    rng = np.random.default_rng(7)
    X, new = rng.normal(size=(45, 3)), rng.normal(size=(20, 3))
    return X, 5.0 + np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=45), new


def models() -> dict[str, Any]:
    """One fitted model of each class, by name."""
    X, y, _ = data()
    grid = {"Cs": [0.5, 5.0], "gammas": [0.1, 1.0], "cv": 3}
    regressors = {
        "SVR": tausvm.SVR(C=3.0),
        "SVR-linear": tausvm.SVR(kernel="linear", C=3.0),
        "QuantileSVR": tausvm.QuantileSVR(tau=TAUS, C=3.0),
        "QuantileSVR-clip": tausvm.QuantileSVR(tau=0.7, C=3.0, clip="range"),
        "ExpectileSVR": tausvm.ExpectileSVR(tau=TAUS, kernel="laplacian"),
        "LinearSVR": tausvm.LinearSVR(),
        "LinearQuantileSVR": tausvm.LinearQuantileSVR(tau=TAUS),
        "LinearExpectileSVR": tausvm.LinearExpectileSVR(tau=0.3),
        "JointQuantileSVR": tausvm.JointQuantileSVR(tau=TAUS),
        "JointExpectileSVR": tausvm.JointExpectileSVR(tau=TAUS, rearrange=True),
        "TauPathSVR": tausvm.TauPathSVR(),
        "SVRCV": tausvm.SVRCV(**grid),
        "QuantileSVRCV": tausvm.QuantileSVRCV(tau=TAUS, **grid),
        "ExpectileSVRCV": tausvm.ExpectileSVRCV(tau=0.5, refit=True, **grid),
        "LinearSVRCV": tausvm.LinearSVRCV(Cs=[0.1, 1.0], cv=3),
        "pipeline": make_pipeline(StandardScaler(), tausvm.QuantileSVR(tau=0.9)),
    }
    fitted = {name: model.fit(X, y) for name, model in regressors.items()}
    fitted["SVR-sparse"] = tausvm.SVR(C=3.0).fit(sp.csr_matrix(X), y)
    fitted["JointSVR"] = tausvm.JointSVR().fit(X, np.column_stack([y, -y]))
    for name in ("TauSVC", "TauPathSVC"):
        fitted[name] = getattr(tausvm, name)(C=3.0).fit(X, y > 5)
    return fitted


def outputs(model: Any, new: np.ndarray) -> dict[str, np.ndarray]:
    """What a model says about new rows, by method."""
    found = {"predict": np.asarray(model.predict(new), dtype=np.float64)}
    if isinstance(model, tausvm.TauPathSVR):
        found["predict_at"] = model.predict(new, tau=0.3)
    if hasattr(model, "decision_function"):
        found["decision_function"] = model.decision_function(new)
    if isinstance(model, tausvm.TauPathSVC):
        found["decision_at"] = model.decision_function(new, tau=0.2)
        found["predict_proba"] = model.predict_proba(new)
    return found


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    *_, new = data()
    expected = {}
    for name, model in models().items():
        save(model, folder / f"{name}.skops")
        for method, values in outputs(model, new).items():
            expected[f"{name}/{method}"] = values
    np.savez_compressed(folder / "expected.npz", **expected)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
