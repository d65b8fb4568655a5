"""Pictures of fitted levels, in scikit-learn's display style. Needs matplotlib."""

from .fan import FanDisplay

__all__ = ["FanDisplay"]
