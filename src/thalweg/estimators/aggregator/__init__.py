"""Forecast combination: the class `Aggregator`, its state (`machine`) and rounds (`kernels`), results and hindsight."""

from thalweg.estimators.aggregator.aggregator import Aggregator
from thalweg.estimators.aggregator.oracles import Oracle, oracle
from thalweg.estimators.aggregator.result import Combination

__all__ = ["Aggregator", "Combination", "Oracle", "oracle"]
