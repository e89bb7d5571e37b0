"""The quantile of the residuals of a model of the mean, tracked.

With e the prediction, offset included, minus the label, and r = max(1/rows, 1 - memory):

    left += r (|e| - left);  offset -= sqrt(r) left l'(e),  l' = 1 - tau for e > 0, -tau for e < 0                   (1)
"""

import numpy as np

from thalweg._core.types import Floats
from thalweg._core.validate import LARGEST_ENTRY
from thalweg._kernels.jit import inner

LARGEST_COEFFICIENT = LARGEST_ENTRY**1.5  # coefficients and offsets stop here
LARGEST_LEFT = LARGEST_ENTRY**2.5


@inner
def bounded(w: float) -> float:
    """Return a coefficient, cut to the largest one that a state may have."""
    return min(max(w, -LARGEST_COEFFICIENT), LARGEST_COEFFICIENT)


@inner
def move_offset(offset: Floats, left: Floats, k: int, tau: float, memory: float, e: float, seen: float) -> None:
    """(1) for model k."""
    rate = max(1.0 / seen, 1.0 - memory)
    left[k] += rate * (min(abs(e), LARGEST_LEFT) - left[k])
    slope = (1.0 - tau) if e > 0.0 else (-tau if e < 0.0 else 0.0)
    offset[k] = bounded(offset[k] - np.sqrt(rate) * left[k] * slope)
