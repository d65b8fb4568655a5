"""Tables with numbers, categories, dates and missing values, prepared and fitted in one call."""

from .estimators import TabularExpectileSVR, TabularQuantileSVR
from .preparation import FramePreparation

__all__ = ["FramePreparation", "TabularExpectileSVR", "TabularQuantileSVR"]
