"""Machines on many machines, and predictions of every model, by Dask.

The engine is Dask's: a scheduler of the user's choice runs one task a partition, and a worker that
is lost costs its tasks. What is here are the sums over partitions that the solvers of
:mod:`tausvm.solvers.linear` need, and a certificate over all rows.

=============================  ================================================================
:class:`LinearSVR`             and :class:`LinearQuantileSVR`, :class:`LinearExpectileSVR`: fits
                               to Dask arrays and data frames, in a few passes over the data
:class:`SVR`                   and :class:`QuantileSVR`, :class:`ExpectileSVR`: kernel machines,
                               by landmarks
:class:`SVRCV`                 and :class:`QuantileSVRCV`, :class:`ExpectileSVRCV`: the same with
                               kernel, features, γ and C chosen on a sample, by tasks
:class:`LinearSVRCV`           and :class:`LinearQuantileSVRCV`, :class:`LinearExpectileSVRCV`: C
                               and ε by cross-validation, all folds and points in the same passes
:func:`predict`                lazy predictions of any fitted or saved model
=============================  ================================================================
"""

from __future__ import annotations

try:
    import dask  # noqa: F401
except ImportError as error:
    raise ImportError(
        "tausvm.dask needs dask and distributed, which are not installed: "
        "pip install 'tausvm[dask]'"
    ) from error

from .landmarks import SVR, ExpectileSVR, QuantileSVR
from .linear import LinearExpectileSVR, LinearQuantileSVR, LinearSVR
from .predicting import predict
from .selection import LinearExpectileSVRCV, LinearQuantileSVRCV, LinearSVRCV
from .settings import Plan
from .tuned import SVRCV, ExpectileSVRCV, QuantileSVRCV

__all__ = [
    "SVR",
    "SVRCV",
    "ExpectileSVR",
    "ExpectileSVRCV",
    "LinearExpectileSVR",
    "LinearExpectileSVRCV",
    "LinearQuantileSVR",
    "LinearQuantileSVRCV",
    "LinearSVR",
    "LinearSVRCV",
    "Plan",
    "QuantileSVR",
    "QuantileSVRCV",
    "predict",
]
