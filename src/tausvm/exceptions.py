"""The warnings of the library that can be filtered by their class."""


class SmallCWarning(UserWarning):
    """C is so small that a fit is a constant, by the standards of its targets.

    Tell Python not to show it by ``warnings.simplefilter("ignore", SmallCWarning)``.
    """


__all__ = ["SmallCWarning"]
