"""The types of arrays in signatures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["AnyArray", "Array"]

Array = NDArray[np.float64]
AnyArray = NDArray[Any]  # of numbers of any kind
