"""The quantile of the residuals of a model of the mean, tracked.

With e the prediction, offset included, minus the label, and r = max(1/rows, 1 - memory):

    left += r (|e| - left);  offset -= sqrt(r) left l'(e),  l' = 1 - tau for e > 0, -tau for e < 0                   (1)
"""

import numpy as np

from thalweg._core.state import Floats
from thalweg._kernels.jit import inner

__all__ = ["move_offset"]


@inner
def move_offset(offset: Floats, left: Floats, k: int, tau: float, memory: float, e: float, seen: float) -> None:
    """(1) for model k."""
    rate = max(1.0 / seen, 1.0 - memory)
    left[k] += rate * (abs(e) - left[k])
    offset[k] -= np.sqrt(rate) * left[k] * ((1.0 - tau) if e > 0.0 else (-tau if e < 0.0 else 0.0))
