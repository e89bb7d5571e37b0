"""The spectrum of a projection onto the Fantope, by sorting all break points at once."""

import numpy as np

__all__ = ["capped"]


def capped(sigma, total):
    """clip(sigma + S, 0, 1) with the shift S that makes the entries sum to `total`.

    The sum grows with S, piecewise linearly: entry i starts to grow at S = -sigma_i and stops at 1 - sigma_i.
    """
    d = sigma.shape[0]
    if total == d:
        return np.ones(d)
    starts, stops = -sigma, 1.0 - sigma
    corners = np.concatenate([starts, stops])
    order = np.argsort(corners, kind="stable")
    corners = corners[order]
    growing = np.cumsum(np.where(order < d, 1, -1))
    sums = np.concatenate([[0.0], np.cumsum(growing[:-1] * np.diff(corners))])
    left = corners[np.searchsorted(sums, total, side="right") - 1]  # total < d: not the last corner
    # entries relative to that corner are small, so that large sigma lose nothing
    full, free = stops <= left, (starts <= left) & (left < stops)
    value = np.where(full, 1.0, np.where(free, sigma + left, 0.0))
    value[free] += (total - value.sum()) / max(np.count_nonzero(free), 1)
    return np.clip(value, 0.0, 1.0)
