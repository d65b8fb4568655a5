"""Columns whose kinds are known, prepared by scikit-learn's transformers: what model files hold.

The command line decides by its options what columns are, and its files are read by other programs
and by earlier versions: they are made of scikit-learn's own transformers. Where nothing is known
of the columns, :class:`~tausvm.tabular.FramePreparation` finds out.
"""

from __future__ import annotations

from collections.abc import Mapping

from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from .kinds import CATEGORY, NUMBER


def named_preparation(kinds: Mapping[str, str], *, impute: bool) -> ColumnTransformer:
    """Numbers scaled to mean 0 and variance 1, categories one-hot encoded.

    Parameters
    ----------
    kinds : dict
        Columns by name, each "number" or "category".
    impute : bool
        Whether missing numbers become the median, and missing categories the most frequent one.
    """
    number = [("scale", StandardScaler())]
    category = [("encode", OneHotEncoder(handle_unknown="ignore", sparse_output=False))]
    if impute:
        number.insert(0, ("impute", SimpleImputer(strategy="median")))
        category.insert(0, ("impute", SimpleImputer(strategy="most_frequent")))
    parts = []
    for name, steps, kind in (("numbers", number, NUMBER), ("categories", category, CATEGORY)):
        names = [column for column, of in kinds.items() if of == kind]
        if names:
            parts.append((name, Pipeline(steps), names))
    return ColumnTransformer(parts, sparse_threshold=0.0, verbose_feature_names_out=False)


def sparse_preparation() -> MaxAbsScaler:
    """Sparse features scaled to [−1, 1]; zeros stay zeros."""
    return MaxAbsScaler()
