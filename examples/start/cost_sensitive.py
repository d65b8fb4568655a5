"""A missed tumour costs ten times a false alarm: the level follows from the costs.

With cost a for a missed positive and b for a false alarm, the best decision is "positive"
where P(positive) > b / (a + b), and that is the level τ of the classifier.
"""

from __future__ import annotations

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

print("   tau   missed   false alarms   cost")
for tau in (0.5, FALSE_ALARM / (MISS + FALSE_ALARM)):
    model = make_pipeline(StandardScaler(), TauSVC(tau=tau, C=1))
    predicted = cross_val_predict(model, X, malignant, cv=5)
    false_alarms, missed = confusion_matrix(malignant, predicted)[[0, 1], [1, 0]]
    cost = int(np.dot([MISS, FALSE_ALARM], [missed, false_alarms]))
    print(f"{tau:6.2f} {missed:8d} {false_alarms:14d} {cost:6d}")
