"""A fit shows its results at once, or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Fit = TypeVar("Fit", bound=Callable[..., Any])

_PUBLISHING = threading.Lock()


def atomic(fit: Fit) -> Fit:
    """Let a ``fit`` work on a copy of its estimator, whose attributes are taken over at the end.

    One estimator may then be fitted from several threads, and is left as one of the fits leaves
    it. A fit that fails or is interrupted leaves it as it was.
    """

    @wraps(fit)
    def fit_a_copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        copy = object.__new__(type(self))
        vars(copy).update(vars(self))
        fit(copy, *args, **kwargs)
        _publish(copy, self)
        return self

    return cast(Fit, fit_a_copy)


def _publish(copy: Any, estimator: Any) -> None:
    """Take over what was fitted; parameters may have been set anew meanwhile, and stay."""
    parameters = estimator.get_params(deep=False)
    fitted = {name: value for name, value in vars(copy).items() if name not in parameters}
    with _PUBLISHING:
        own = vars(estimator)
        own.update(fitted)
        for name in own.keys() - fitted.keys() - parameters.keys():
            del own[name]
