"""Problems: sequences of losses, one a round."""

from thalweg.problems._base import Problem
from thalweg.problems.functions import FromFunctions, FromLosses
from thalweg.problems.generators import gradual, paper_ellipsoid, piecewise_stationary
from thalweg.problems.linear_model import (
    AbsoluteRegression,
    LinearLosses,
    LinearModel,
    LinearRegression,
    LogisticRegression,
)

__all__ = [
    "AbsoluteRegression",
    "FromFunctions",
    "FromLosses",
    "LinearLosses",
    "LinearModel",
    "LinearRegression",
    "LogisticRegression",
    "Problem",
    "gradual",
    "paper_ellipsoid",
    "piecewise_stationary",
]
