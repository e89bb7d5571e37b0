"""Regret of a run, against any comparator, on any interval, and the bound of the theorem.

Comparators in hindsight (`best_fixed`, `best_per_round`, `best_path`), measures (`static`, `dynamic`, `adaptive`,
`interval_dynamic`, `path_length`, `gradient_variation`), certificates (`certify`), simple decision makers beside a run
(`witnesses`) and pictures (`thalweg.regret.plots`).
"""

from thalweg.regret import plots
from thalweg.regret.certificates import Assumption, Certificate, CertifiedInterval, certify
from thalweg.regret.comparators import Comparator, best_fixed, best_per_round, path_length
from thalweg.regret.measures import IntervalRegret, Regret, WorstInterval, adaptive, dynamic, interval_dynamic, static
from thalweg.regret.path import best_path
from thalweg.regret.variation import Between, gradient_variation
from thalweg.regret.witnesses import Witness, Witnesses, witnesses

__all__ = [
    "Assumption",
    "Between",
    "Certificate",
    "CertifiedInterval",
    "Comparator",
    "IntervalRegret",
    "Regret",
    "Witness",
    "Witnesses",
    "WorstInterval",
    "adaptive",
    "best_fixed",
    "best_path",
    "best_per_round",
    "certify",
    "dynamic",
    "gradient_variation",
    "interval_dynamic",
    "path_length",
    "plots",
    "static",
    "witnesses",
]
