"""
Is a quantile what it says? Calibration on new data
===================================================

A C that is too large follows the training data: its 90 % lie above far fewer than 90 % of new
targets, and no number on the training data tells.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tausvm import QuantileSVR, QuantileSVRCV
from tausvm.plotting import LevelCalibrationDisplay

TAUS = [0.1, 0.25, 0.5, 0.75, 0.9]
X, y = load_diabetes(return_X_y=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# A machine with a C out of the air beside one that chooses C and γ, on patients that neither saw.
machines = {
    "C = 100": QuantileSVR(tau=TAUS, C=100),
    "chosen C and γ": QuantileSVRCV(tau=TAUS, Cs=6, gammas=6),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
print("share of new patients at or below the level")
print(f"{'':<16}", *(f"{tau:>6.2f}" for tau in TAUS))
for ax, (name, machine) in zip(axes, machines.items(), strict=True):
    model = make_pipeline(StandardScaler(), machine).fit(X_train, y_train)
    display = LevelCalibrationDisplay.from_estimator(model, X_test, y_test, ax=ax)
    ax.set_title(name)
    print(f"{name:<16}", *(f"{share:>6.2f}" for share in display.observed))
plt.show()
