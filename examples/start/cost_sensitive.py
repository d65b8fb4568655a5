"""
A missed tumour costs ten times a false alarm
=============================================

With cost :math:`a` for a missed positive and :math:`b` for a false alarm, the best decision is
"positive" where :math:`P(\\text{positive}) > b / (a + b)`, and that is the level τ of the
classifier.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tausvm import TauSVC

MISS, FALSE_ALARM = 10, 1

X, benign = load_breast_cancer(return_X_y=True)
malignant = 1 - benign
X = X[:, :5]  # five of thirty measurements, so that there is something to decide


def errors(tau: float) -> tuple[int, int]:
    """Missed tumours and false alarms at a level, by cross-validation."""
    model = make_pipeline(StandardScaler(), TauSVC(tau=tau, C=1))
    predicted = cross_val_predict(model, X, malignant, cv=5)
    false_alarms, missed = confusion_matrix(malignant, predicted)[[0, 1], [1, 0]]
    return int(missed), int(false_alarms)


# %%
# The level that the costs ask for, beside that of a classifier that knows of no costs.
asked = FALSE_ALARM / (MISS + FALSE_ALARM)
print("   tau   missed   false alarms   cost")
for tau in (0.5, asked):
    missed, false_alarms = errors(tau)
    cost = int(np.dot([MISS, FALSE_ALARM], [missed, false_alarms]))
    print(f"{tau:6.2f} {missed:8d} {false_alarms:14d} {cost:6d}")

# %%
# The cost over all levels has its least near the one that follows from the costs.
levels = np.array([0.02, 0.05, asked, 0.15, 0.25, 0.35, 0.5, 0.65, 0.8])
counts = np.array([errors(tau) for tau in levels])
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(levels, counts @ [MISS, FALSE_ALARM], marker="o")
ax.axvline(asked, color="0.5", linestyle=":")
ax.set(xlabel="level τ", ylabel="cost of all errors", ylim=(0, None))
plt.show()
