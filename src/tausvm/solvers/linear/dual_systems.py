"""Newton systems with few active rows, solved by a matrix of their inner products.

    (I + XᵀDX)⁻¹ g = g − Xᵀ (D⁻¹ + XXᵀ)⁻¹ X g      (X and D of the active rows)

Inner products outlive a change of the active set: only those of rows not met before are
computed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .rows import Rows

Array = NDArray[np.float64]
Index = NDArray[np.int64]

#: active rows up to which inner products are held: 72 MB
MOST_ROWS = 3000


class InnerProducts:
    """Inner products of rows, grown as rows are asked for."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.place = np.full(len(rows), -1, dtype=np.int64)
        self.known = np.empty(0, dtype=np.int64)
        self.matrix = np.empty((0, 0))

    def room_for(self, active: Index) -> bool:
        """Whether these rows can be held beside, or instead of, those known."""
        return len(active) <= MOST_ROWS

    def of(self, active: Index) -> Array:
        """The matrix of inner products of these rows, a copy."""
        fresh = active[self.place[active] < 0]
        if len(self.known) + len(fresh) > MOST_ROWS:
            self.place[:] = -1
            self.known, fresh = np.empty(0, dtype=np.int64), active
            self.matrix = np.empty((0, 0))
        if len(fresh) > 0:
            self._learn(fresh)
        at = self.place[active]
        return self.matrix[np.ix_(at, at)]

    def _learn(self, fresh: Index) -> None:
        old, total = len(self.known), len(self.known) + len(fresh)
        self.known = np.concatenate([self.known, fresh])
        self.place[fresh] = np.arange(old, total)
        matrix = np.empty((total, total))
        matrix[:old, :old] = self.matrix
        block = self.rows.products(fresh, self.known)
        matrix[old:] = block
        matrix[:old, old:] = block[:, :old].T
        self.matrix = matrix
