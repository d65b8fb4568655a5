"""A table as an analyst has it: numbers, text, dates, categories, and holes in all of them."""

from __future__ import annotations

import numpy as np
import pandas as pd


def mixed_table(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Flats with their rents."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(20, 120, n)
    quarter = rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2])
    state = rng.choice(["poor", "fair", "good"], n)
    built = rng.lognormal(3, 1.5, n)
    day = np.datetime64("2021-03-01") + rng.integers(0, 1200, n)
    rent = 8 * size + 200 * (quarter == "north") + 100 * (state == "good")
    rent = rent + 100 * np.sin(2 * np.pi * day.astype(int) / 365.25) + rng.normal(0, 40, n)
    frame = pd.DataFrame(
        {
            "size": size,
            "quarter": pd.Series(quarter, dtype=object),
            "state": pd.Categorical(state, categories=["poor", "fair", "good"], ordered=True),
            "age": [f"{v:.1f}" for v in built],
            "let": day,
            "lift": rng.uniform(size=n) < 0.3,
            "flat": [f"flat {k}" for k in range(n)],
            "country": "here",
        }
    )
    frame.loc[[3, 7], "size"] = np.nan
    frame.loc[[5, 8, 11], "quarter"] = None
    frame.loc[[1, 2], "age"] = ["?", "n/a"]
    frame.loc[4, "let"] = pd.NaT
    return frame, pd.Series(rent)
