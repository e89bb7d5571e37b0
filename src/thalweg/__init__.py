"""Thalweg: online convex optimisation when the best decision keeps moving.

A learner decides, the world reveals a loss, the learner moves. `domains` are the feasible sets, `losses` and `problems`
what the world does, `play` runs one against the other, `testing` checks parts of your own.
"""

from thalweg import domains, errors, losses, problems, regret, testing
from thalweg.algorithms import (
    AOA,
    CBCE,
    OGD,
    SACS,
    SOGD,
    Ader,
    CutkoskyAdaptive,
    CutkoskyPrintedVariant,
    EfficientAdaptive,
    EfficientAOA,
    EfficientCBCE,
    EfficientCutkosky,
    EfficientDynamic,
    EfficientIntervalDynamic,
    Sword,
)
from thalweg.cover_ensemble import CoverEnsemble
from thalweg.ensemble import Ensemble
from thalweg.learner import Learner, Queries
from thalweg.one_projection import OneProjection
from thalweg.play import Run, play

__version__ = "0.1.0"

__all__ = [
    "AOA",
    "CBCE",
    "OGD",
    "SACS",
    "SOGD",
    "Ader",
    "CoverEnsemble",
    "CutkoskyAdaptive",
    "CutkoskyPrintedVariant",
    "EfficientAOA",
    "EfficientAdaptive",
    "EfficientCBCE",
    "EfficientCutkosky",
    "EfficientDynamic",
    "EfficientIntervalDynamic",
    "Ensemble",
    "Learner",
    "OneProjection",
    "Queries",
    "Run",
    "Sword",
    "domains",
    "errors",
    "losses",
    "play",
    "problems",
    "regret",
    "testing",
]
