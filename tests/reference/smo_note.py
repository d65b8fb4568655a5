"""The SMO-SVR note's own pair step, Tables 2 and 4 with the errata, and SMO on top of it.

The note lowers nothing: it updates βⱼ to where Ψ₂ is greatest on βᵢ + βⱼ = γ and gives βᵢ
the rest. Fᵢ = Σₖ βₖ Kₖᵢ − yᵢ; η = Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: rows of Table 2 by the case of γ
TABLE_2_ROWS = {"0": 5, "(0,C)": 7, "C": 3, "(C,2C)": 3, "(-C,0)": 7, "-C": 3, "(-2C,-C)": 3}
#: rows of Table 4
TABLE_4_ROWS = {"0": 3, "(0,C)": 4, "C": 2, "(C,2C)": 2, "(-C,0)": 4, "-C": 2, "(-2C,-C)": 2}


def gamma_case(gamma: float, C: float) -> str:
    if gamma == 0:
        return "0"
    if abs(gamma) == C:
        return "C" if gamma > 0 else "-C"
    if gamma > 0:
        return "(0,C)" if gamma < C else "(C,2C)"
    return "(-C,0)" if gamma > -C else "(-2C,-C)"


def table_step(
    beta_i: float, beta_j: float, F_i: float, F_j: float, eta: float, C: float, epsilon: float
) -> tuple[float, tuple[int, str, int]]:
    """The new βⱼ, and which row of which table gave it: (table, case of γ, row from 1)."""
    gamma = beta_i + beta_j
    case = gamma_case(gamma, C)
    low, high = max(-C, gamma - C), min(C, gamma + C)
    difference = F_i - F_j
    if abs(gamma) == 2 * C:
        return beta_j, (0, "2C", 1)
    if eta > 0:

        def raw(jump: int) -> float:
            return beta_j + (difference + jump * epsilon) / eta

        new, row = _table_2(case, gamma, low, high, raw(2), raw(0), raw(-2))
        return new, (2, case, row)
    new, row = _table_4(case, gamma, low, high, difference, epsilon)
    return new, (4, case, row)


def _table_2(
    case: str, gamma: float, low: float, high: float, raw2: float, raw0: float, raw_2: float
) -> tuple[float, int]:
    if case == "0":
        if raw2 <= low:
            return low, 1
        if low < raw2 < 0:
            return raw2, 2
        if raw_2 <= 0 <= raw2:
            return 0.0, 3
        return (raw_2, 4) if raw_2 < high else (high, 5)
    if case == "(0,C)":
        if raw2 <= low:
            return low, 1
        if low < raw2 < 0:
            return raw2, 2
        if raw0 <= 0 <= raw2:
            return 0.0, 3
        if 0 < raw0 < gamma:
            return raw0, 4
        if raw_2 <= gamma <= raw0:
            return gamma, 5
        return (raw_2, 6) if raw_2 < high else (high, 7)
    if case == "(-C,0)":
        if raw2 <= low:
            return low, 1
        if low < raw2 < gamma:
            return raw2, 2
        if raw0 <= gamma <= raw2:
            return gamma, 3  # the print has β_raw(0) here
        if gamma < raw0 < 0:
            return raw0, 4
        if raw_2 <= 0 <= raw0:
            return 0.0, 5
        return (raw_2, 6) if raw_2 < high else (high, 7)
    # |γ| ≥ C: both variables keep their signs, there is no kink inside
    if raw0 <= low:
        return low, 1
    return (raw0, 2) if raw0 < high else (high, 3)


def _table_4(
    case: str, gamma: float, low: float, high: float, difference: float, epsilon: float
) -> tuple[float, int]:
    if case == "0":
        if difference < -2 * epsilon:
            return low, 1
        return (0.0, 2) if difference <= 2 * epsilon else (high, 3)
    if case == "(0,C)":
        if difference < -2 * epsilon:
            return low, 1
        if difference <= 0:
            return 0.0, 2
        return (gamma, 3) if difference < 2 * epsilon else (high, 4)
    if case == "(-C,0)":
        if difference <= -2 * epsilon:
            return low, 1
        if difference < 0:
            return gamma, 2
        return (0.0, 3) if difference <= 2 * epsilon else (high, 4)
    if case in ("C", "(-2C,-C)"):
        return (low, 1) if difference <= 0 else (high, 2)
    return (low, 1) if difference < 0 else (high, 2)


def line_objective(
    beta_j: float,
    old: tuple[float, float],
    F: tuple[float, float],
    eta: float,
    epsilon: float,
) -> float:
    """Ψ along the line up to a constant, to be maximised: what the tables claim to solve."""
    gamma = old[0] + old[1]
    step = beta_j - old[1]
    return (
        -epsilon * (abs(gamma - beta_j) + abs(beta_j)) + (F[0] - F[1]) * step - 0.5 * eta * step**2
    )


def smo_svr(
    K: Array, y: Array, C: float, epsilon: float, tol: float = 1e-10, max_steps: int = 200_000
) -> tuple[Array, float]:
    """ε-SVR with an offset by the note's pair steps; β and b.

    The pair is the most violating one by one-sided derivatives over all indices (the note's
    own conditions are necessary only), and b the middle of what they leave.
    """
    n = len(y)
    beta, F = np.zeros(n), -y.astype(float)
    for _ in range(max_steps):
        up = np.where(beta < C, -F - np.where(beta >= 0, epsilon, -epsilon), -np.inf)
        down = np.where(beta > -C, -F - np.where(beta > 0, epsilon, -epsilon), np.inf)
        i, j = int(up.argmax()), int(down.argmin())
        if up[i] - down[j] <= tol:
            return beta, 0.5 * float(up[i] + down[j])
        eta = max(K[i, i] + K[j, j] - 2 * K[i, j], 0.0)
        new, _ = table_step(beta[i], beta[j], F[i], F[j], eta, C, epsilon)
        step = new - beta[j]
        beta[j] = new
        beta[i] -= step
        F += step * (K[j] - K[i])
    raise ArithmeticError(f"no convergence in {max_steps} steps")
