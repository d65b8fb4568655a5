"""Models that earlier versions saved load, predict the same and can be used on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from tausvm.persistence import load

from .write_golden import data, outputs

FOLDERS = sorted(path for path in (Path(__file__).parent / "golden").iterdir() if path.is_dir())
FILES = [file for folder in FOLDERS for file in sorted(folder.glob("*.skops"))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_an_older_model(file: Path) -> None:
    model = load(file)
    X, y, new = data()
    expected = np.load(file.parent / "expected.npz")
    for method, values in outputs(model, new).items():
        before = expected[f"{file.stem}/{method}"]
        np.testing.assert_allclose(values, before, rtol=0, atol=1e-12 * np.std(y))
    repr(model)
    if file.stem == "JointSVR":
        y = np.column_stack([y, -y])
    again = clone(model).fit(X, y > 5 if "SVC" in file.stem else y)
    spread = np.std(np.asarray(outputs(again, new)["predict"], dtype=np.float64) - y.mean())
    moved = outputs(again, new)["predict"] - expected[f"{file.stem}/predict"]
    # what it was fitted with means the same: C counts as it did
    assert np.abs(moved).max() <= 0.05 * max(spread, np.std(y))
