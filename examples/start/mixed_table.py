"""A table as it is: numbers, categories, dates, words among numbers, and holes in all of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tausvm import TabularQuantileSVR
from tausvm.metrics import coverage

# Flats with their rents, as a spreadsheet has them.
rng = np.random.default_rng(0)
n = 400
flats = pd.DataFrame(
    {
        "flat": [f"flat {k}" for k in range(n)],
        "size": rng.uniform(20, 120, n),
        "quarter": rng.choice(["north", "south", "west"], n),
        "state": pd.Categorical(
            rng.choice(["poor", "fair", "good"], n), ["poor", "fair", "good"], ordered=True
        ),
        "built": rng.integers(1900, 2020, n).astype(str),
        "let": pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 1200, n), "D"),
        "currency": "EUR",
    }
)
season = np.sin(2 * np.pi * flats["let"].dt.day_of_year / 365)
rent = 9 * flats["size"] + 150 * (flats["quarter"] == "north") + 80 * flats["state"].cat.codes
rent += 60 * season + (0.05 + 0.001 * flats["size"]) * 9 * flats["size"] * rng.normal(size=n)
flats.loc[rng.integers(0, n, 12), "built"] = "?"
flats.loc[rng.integers(0, n, 20), "quarter"] = None
flats.loc[rng.integers(0, n, 20), "size"] = np.nan

# One call prepares the columns, chooses C and γ for each level, and fits.
train, test = slice(0, 280), slice(280, n)
model = TabularQuantileSVR(tau=[0.1, 0.5, 0.9], Cs=6, gammas=6)
model.fit(flats[train], rent[train])

# What each column was taken for, and why.
for column in model.columns_:
    print(f"{column['name']:<9}{column['kind']:<11}{column['why']}")

shares = coverage(rent[test], model.predict(flats[test]))
for tau, share, gap in zip(model.tau, shares, model.dual_gap_, strict=True):
    print(f"quantile {tau}: {share:.0%} of new flats at or below, gap {gap:.0e}")

# New tables may have holes and categories that the fit has not seen.
new = flats[test].head(2).assign(quarter=["harbour", None])
print("rents between:", *np.round(model.predict(new)[:, [0, 2]]).tolist())
