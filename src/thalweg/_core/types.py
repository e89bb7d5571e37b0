"""The types of arrays in signatures and states."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
AnyArray = NDArray[Any]  # of numbers of any kind
