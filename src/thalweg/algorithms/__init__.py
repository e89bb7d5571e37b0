"""The algorithms, one paper's method per file."""

from thalweg.algorithms.ader import Ader
from thalweg.algorithms.efficient_dynamic import EfficientDynamic
from thalweg.algorithms.ogd import OGD
from thalweg.algorithms.sogd import SOGD
from thalweg.algorithms.sword import Sword

__all__ = ["OGD", "SOGD", "Ader", "EfficientDynamic", "Sword"]
