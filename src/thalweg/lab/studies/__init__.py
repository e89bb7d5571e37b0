"""The studies: a package each, with the help of its command in the docstring and a `Study` in the module `study`.

A new one is a package here and a line in `STUDIES`.
"""

from thalweg.lab.studies import combination, conformal, control, paper, pca, thresholds, tracker

__all__ = ["STUDIES"]

STUDIES = {
    "reproduce": paper,
    "combination": combination,
    "control": control,
    "pca": pca,
    "thresholds": thresholds,
    "tracker": tracker,
    "conformal": conformal,
}  # by command
