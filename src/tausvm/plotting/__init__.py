"""Pictures of fitted models, in scikit-learn's display style. Needs matplotlib."""

from .boundary import PathBoundaryDisplay
from .calibration import LevelCalibrationDisplay
from .convergence import ConvergenceDisplay
from .fan import FanDisplay
from .importance import FeatureImportanceDisplay
from .path import PathDisplay
from .reliability import ReliabilityDisplay
from .surface import CVSurfaceDisplay

__all__ = [
    "CVSurfaceDisplay",
    "ConvergenceDisplay",
    "FanDisplay",
    "FeatureImportanceDisplay",
    "LevelCalibrationDisplay",
    "PathBoundaryDisplay",
    "PathDisplay",
    "ReliabilityDisplay",
]
