"""Drop-in means drop-in: scikit-learn's own tests, but for differences that are documented."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tausvm import SVR

from ..blocks import ROOT
from .run import documented


@pytest.mark.slow
def test_sklearns_tests_pass_with_our_classes() -> None:
    pytest.importorskip("sklearn.svm.tests", reason="scikit-learn is installed without its tests")
    done = subprocess.run(
        [sys.executable, "-m", "tests.drop_in.run"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


def test_the_documented_differences_are_found() -> None:
    assert "test_svm_with_infinite_C" in documented()


def test_weights_cannot_be_written_to_in_vain() -> None:
    X = np.arange(12.0).reshape(6, 2)
    model = SVR(kernel="linear").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 0.0
