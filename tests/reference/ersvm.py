"""The ER-SVM paper's exact steps for kernels with any diagonal, in plain NumPy.

α ≥ 0 and β ≥ 0 are the paper's two variables a sample; the package's β is their difference.
b₁ = k(x, x) + 1/(2Cτ) and b₂ = k(x, x) + 1/(2C(1−τ)), which is the paper's (13) at k(x, x) = 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def one_variable(c: float, k: float, C: float, tau: float) -> float:
    """Theorem 3: α − β with α = max(0, c/b₁), β = max(0, −c/b₂)."""
    b1, b2 = k + 1 / (2 * C * tau), k + 1 / (2 * C * (1 - tau))
    return max(0.0, c / b1) - max(0.0, -c / b2)


def theorem_7(c: Array, K: Array, C: float, tau: float) -> tuple[Array, list[int]]:
    """The pair αᵢ − βᵢ, αⱼ − βⱼ, and which of the cases (38) to (41) are feasible.

    T₁ to T₄ with each sample's own b₁ and b₂; (40) is feasible iff T₂ ≤ 0 and T₃ ≤ 0, (41)
    iff T₁ ≤ 0 and T₄ ≤ 0, as the paper's table has it.
    """
    (c_i, c_j), k = c, K[0, 1]
    b1_i, b1_j = np.diagonal(K) + 1 / (2 * C * tau)
    b2_i, b2_j = np.diagonal(K) + 1 / (2 * C * (1 - tau))
    T1, T2 = k * c_j - b2_j * c_i, k * c_i - b2_i * c_j
    T3, T4 = b1_j * c_i - k * c_j, b1_i * c_j - k * c_i
    solutions = {}
    if T1 >= 0 and T2 >= 0:
        solutions[38] = -np.array([T1, T2]) / (b2_i * b2_j - k**2)
    if T3 >= 0 and T4 >= 0:
        solutions[39] = np.array([T3, T4]) / (b1_i * b1_j - k**2)
    if T2 <= 0 and T3 <= 0:
        solutions[40] = np.array([-T3, T2]) / (k**2 - b2_i * b1_j)
    if T1 <= 0 and T4 <= 0:
        solutions[41] = np.array([T1, -T4]) / (k**2 - b1_i * b2_j)
    return next(iter(solutions.values())), list(solutions)
