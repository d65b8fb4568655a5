"""
Yu, Vishwanathan and Zhang (2009): one fit for every ratio of costs
===================================================================

"The Entire Quantile Path of a Risk-Agnostic SVM Classifier". The dual solution is piecewise linear
in τ. Once its kinks are known, the classifier of any level costs no more than a prediction, and the
level at which a decision flips is a probability.
"""

from __future__ import annotations

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import brier_score_loss, confusion_matrix
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from tausvm import TauPathSVC, TauSVC
from tausvm.plotting import PathBoundaryDisplay

X, benign = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X[:, :5])
X_train, X_test, y_train, y_test = train_test_split(X, 1 - benign, random_state=0)

started = time.perf_counter()
path = TauPathSVC(C=1.0, gamma=0.1).fit(X_train, y_train)
seconds = time.perf_counter() - started
print(f"{path.n_kinks_} kinks in {seconds:.2f} s, largest gap {path.dual_gap_:.0e}")

# %%
# At single levels the path is the machine that was fitted at that level.
print("   tau   missed   false alarms   differs from a fit at that level by")
for tau in (0.05, 0.2, 0.5, 0.8):
    alarms, missed = confusion_matrix(y_test, path.predict(X_test, tau=tau))[[0, 1], [1, 0]]
    alone = TauSVC(tau=tau, C=1.0, gamma=0.1, tol=1e-10).fit(X_train, y_train)
    apart = path.decision_function(X_test, tau=tau) - alone.decision_function(X_test)
    print(f"{tau:6.2f} {missed:8d} {alarms:14d} {np.abs(apart).max():14.0e}")

# %%
# Probabilities, by the levels at which decisions flip.
probability = path.predict_proba(X_test)[:, 1]
share = np.full(len(y_test), y_train.mean())
print(f"Brier score of the probabilities: {brier_score_loss(y_test, probability):.3f}, "
      f"of the share alone {brier_score_loss(y_test, share):.3f}")  # fmt: skip

# %%
# Boundaries at some levels, in the plane of two features.
plane = TauPathSVC(C=1.0, gamma=0.3).fit(X_train[:, :2], y_train)
PathBoundaryDisplay.from_estimator(plane, X_test[:, :2], y_test)
plt.show()
