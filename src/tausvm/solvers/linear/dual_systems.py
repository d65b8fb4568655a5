"""Newton systems with few active rows, solved by a matrix of their inner products.

    (I + XᵀDX)⁻¹ g = g − Xᵀ (D⁻¹ + XXᵀ)⁻¹ X g      (X and D of the active rows)

Inner products outlive a change of the active set: only those of rows not met before are
computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: active rows up to which inner products are held: 72 MB
MOST_ROWS = 3000
#: rows whose inner products are computed in one call
BLOCK = 100


class InnerProducts:
    """Inner products of rows of a matrix, grown as rows are asked for."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.place = np.full(X.shape[0], -1, dtype=np.int32)
        self.known = np.empty(0, dtype=np.int64)
        self.matrix = np.empty((0, 0))

    def of(self, active: Index, pause: Callable[[], None]) -> Array:
        """The matrix of inner products of these rows, a copy; ``pause`` may end the work."""
        fresh = active[self.place[active] < 0]
        if len(self.known) + len(fresh) > MOST_ROWS:
            self.place[self.known] = -1
            self.known, fresh = np.empty(0, dtype=np.int64), active
            self.matrix = np.empty((0, 0))
        if len(fresh) > 0:
            self._learn(fresh, pause)
        at = self.place[active]
        return self.matrix[np.ix_(at, at)]

    def _learn(self, fresh: Index, pause: Callable[[], None]) -> None:
        old, total = len(self.known), len(self.known) + len(fresh)
        known = np.concatenate([self.known, fresh])
        matrix = np.empty((total, total))
        matrix[:old, :old] = self.matrix
        right = self.X[known].T
        for start in range(0, len(fresh), BLOCK):  # short calls, so that Ctrl-C is soon seen
            pause()
            some = slice(old + start, min(old + start + BLOCK, total))
            product = self.X[known[some]] @ right
            matrix[some] = product.toarray() if sp.issparse(product) else product
        matrix[:old, old:] = matrix[old:, :old].T
        # what was interrupted is not known
        self.known, self.matrix = known, matrix
        self.place[fresh] = np.arange(old, total)
