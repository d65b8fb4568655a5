"""
Sangnier, Fercoq and d'Alché-Buc (2017): all levels as one function
===================================================================

"Data sparse nonparametric regression with ε-insensitive losses". The kernel over levels makes
neighbouring curves alike, so that they cross less; ε makes samples support vectors for all levels
or for none, so that fewer are left.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from tausvm import JointQuantileSVR, QuantileSVR
from tausvm.metrics import crossing_rate

rng = np.random.default_rng(0)
n, taus = 80, np.arange(1, 10) / 10
x = rng.uniform(0, 1.5, size=n)
X, y = x[:, None], np.sin(6 * x) + 0.5 * np.sqrt(0.2 + x) * rng.normal(size=n)
grid = np.linspace(0, 1.5, 400)[:, None]
common = {"tau": taus.tolist(), "C": 30.0, "gamma": 20.0}
machines = {
    "one by one": QuantileSVR(**common),
    "joint, gamma_tau = 10": JointQuantileSVR(gamma_tau=10.0, **common),
    "joint, gamma_tau = 1": JointQuantileSVR(gamma_tau=1.0, **common),
    "… and epsilon = 1": JointQuantileSVR(gamma_tau=1.0, epsilon=1.0, **common),
}

# %%
# Nine levels of eighty points, as they were fitted: ``predict`` puts them in order without ``raw``.
print("                         crossings   support vectors")
figure, axes = plt.subplots(2, 2, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
for ax, (name, machine) in zip(axes.flat, machines.items(), strict=True):
    levels = machine.fit(X, y).predict(grid, raw=True)
    print(f"{name:<24} {crossing_rate(levels, tau=taus):>8.1%} {len(machine.support_):>12d} of {n}")
    ax.scatter(x, y, s=6, color="0.6")
    ax.plot(grid, levels, color="C0", lw=0.8)
    ax.set_title(name)
plt.show()
