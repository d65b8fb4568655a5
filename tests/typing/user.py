"""A user's script, as a strict type checker reads it; it is not run."""

import numpy as np
from numpy.typing import NDArray

from tausvm import (
    SVR,
    ExpectileSVR,
    JointQuantileSVR,
    LinearSVR,
    QuantileSVR,
    QuantileSVRCV,
    TabularQuantileSVR,
    TauPathSVC,
    TauPathSVR,
    TauSVC,
)
from tausvm.exceptions import SmallCWarning
from tausvm.metrics import coverage, pinball_scorer
from tausvm.persistence import load, read_info, save
from tausvm.solvers import SMO, SolverResult

X: NDArray[np.float64] = np.zeros((20, 2))
y: NDArray[np.float64] = np.arange(20.0)

svr: SVR = SVR(C=10.0, epsilon=0.1, solver=SMO(working_set="halves")).fit(X, y)
predicted: NDArray[np.float64] = svr.predict(X)
score: float = svr.score(X, y)
levels: NDArray[np.float64] = QuantileSVR(tau=[0.1, 0.9]).fit(X, y).predict_interval(X, 0.8)
expectiles: NDArray[np.float64] = ExpectileSVR(tau=0.3).fit(X, y).predict(X)
weights: NDArray[np.float64] = LinearSVR(C=1.0).fit(X, y).coef_
joint: NDArray[np.float64] = JointQuantileSVR(tau=[0.1, 0.9]).fit(X, y).predict(X)
chosen: NDArray[np.float64] = QuantileSVRCV(tau=0.5, cv=3).fit(X, y).predict(X)
frame: NDArray[np.float64] = TabularQuantileSVR(tau=0.5).fit(X, y).predict(X)
path: NDArray[np.float64] = TauPathSVR().fit(X, y).predict(X, tau=0.3)
decision: NDArray[np.float64] = TauSVC(tau=0.2).fit(X, y > 3).decision_function(X)
chance: NDArray[np.float64] = TauPathSVC().fit(X, y > 3).predict_proba(X)
result = svr.result_
if isinstance(result, SolverResult):
    gap: float = result.dual_gap
share: float | NDArray[np.float64] = coverage(y, predicted)
scorer = pinball_scorer([0.1, 0.9])
save(svr, "model.skops", card={"target": "y"}, trusted=[SVR])
versions: dict[str, str] = read_info("model.skops").versions
same = load("model.skops")
category: type[UserWarning] = SmallCWarning
