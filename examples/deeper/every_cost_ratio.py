"""
Train once, choose the costs later
==================================

One path serves every trade-off between two errors, and the level at which a decision flips is a
probability.
"""

from __future__ import annotations

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import brier_score_loss, confusion_matrix
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from tausvm import TauPathSVC
from tausvm.plotting import PathDisplay

X, benign = load_breast_cancer(return_X_y=True)
malignant = 1 - benign
X = StandardScaler().fit_transform(X[:, :5])  # five of thirty measurements
X_train, X_test, y_train, y_test = train_test_split(X, malignant, random_state=0)

started = time.perf_counter()
model = TauPathSVC(kernel="linear", C=1.0).fit(X_train, y_train)
print(f"{model.n_kinks_} kinks in {time.perf_counter() - started:.2f} s, ", end="")
print(f"largest relative duality gap {model.dual_gap_:.0e}")

# %%
# Costs that come up after training.
print("a miss costs   tau   missed   false alarms")
for ratio in (1, 5, 20, 100):
    classifier = model.for_costs(false_positive=1, false_negative=ratio)
    false_alarms, missed = confusion_matrix(y_test, classifier.predict(X_test))[[0, 1], [1, 0]]
    print(f"{ratio:>9} ×  {classifier.tau:6.3f} {missed:>8} {false_alarms:>14}")

# %%
# The same path gives probabilities.
probability = model.predict_proba(X_test)[:, 1]
constant = np.full(len(y_test), y_train.mean())
print(f"Brier score of the probabilities {brier_score_loss(y_test, probability):.3f}, ", end="")
print(f"of a constant {brier_score_loss(y_test, constant):.3f}")

# %%
# Both errors at every level.
PathDisplay.from_estimator(model, X_test, y_test)
plt.show()
