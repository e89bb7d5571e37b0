"""Experts, which run alone, in a pool, or on every interval of a cover. One kind a file."""

from thalweg.experts._base import Expert
from thalweg.experts.adagrad import AdaGradDescent
from thalweg.experts.descent import Descent
from thalweg.experts.pool import Pool

__all__ = ["AdaGradDescent", "Descent", "Expert", "Pool"]
