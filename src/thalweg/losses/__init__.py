"""Losses of one round, functions of a prediction <a, x>. Any object with `value` and `gradient` is a loss."""

from thalweg.losses._base import KINDS, Loss, PredictionLoss
from thalweg.losses.absolute import Absolute
from thalweg.losses.hinge import Hinge
from thalweg.losses.huber import Huber
from thalweg.losses.linear import Linear
from thalweg.losses.log import Log
from thalweg.losses.logistic import Logistic
from thalweg.losses.pinball import Pinball
from thalweg.losses.squared import Squared

__all__ = [
    "KINDS",
    "Absolute",
    "Hinge",
    "Huber",
    "Linear",
    "Log",
    "Logistic",
    "Loss",
    "Pinball",
    "PredictionLoss",
    "Squared",
]
