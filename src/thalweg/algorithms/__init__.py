"""The algorithms, one paper's method per file."""

from thalweg.algorithms.ader import Ader
from thalweg.algorithms.aflh import AFLH
from thalweg.algorithms.aoa import AOA, EfficientAOA
from thalweg.algorithms.cbce import CBCE, EfficientCBCE
from thalweg.algorithms.cutkosky import CutkoskyAdaptive, CutkoskyPrintedVariant, EfficientCutkosky
from thalweg.algorithms.efficient_adaptive import EfficientAdaptive
from thalweg.algorithms.efficient_bandit import EfficientBandit
from thalweg.algorithms.efficient_delayed import EfficientDelayed
from thalweg.algorithms.efficient_dynamic import EfficientDynamic
from thalweg.algorithms.efficient_interval_dynamic import EfficientIntervalDynamic
from thalweg.algorithms.efficient_optimistic import EfficientOptimistic
from thalweg.algorithms.ogd import OGD
from thalweg.algorithms.sacs import SACS
from thalweg.algorithms.saol import SAOL
from thalweg.algorithms.scream import EfficientScream, Scream
from thalweg.algorithms.sogd import SOGD
from thalweg.algorithms.sword import Sword
from thalweg.algorithms.sword_pp import SwordPP
from thalweg.algorithms.tracker import Tracker

__all__ = [
    "AFLH",
    "AOA",
    "CBCE",
    "OGD",
    "SACS",
    "SAOL",
    "SOGD",
    "Ader",
    "CutkoskyAdaptive",
    "CutkoskyPrintedVariant",
    "EfficientAOA",
    "EfficientAdaptive",
    "EfficientBandit",
    "EfficientCBCE",
    "EfficientCutkosky",
    "EfficientDelayed",
    "EfficientDynamic",
    "EfficientIntervalDynamic",
    "EfficientOptimistic",
    "EfficientScream",
    "Scream",
    "Sword",
    "SwordPP",
    "Tracker",
]
