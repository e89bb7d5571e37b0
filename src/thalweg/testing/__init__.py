"""Checks for parts of your own: `check_domain`, `check_loss`, `check_learner`."""

from thalweg.testing._domain import check_domain
from thalweg.testing._learner import LEARNER_CHECKS, STANDARD, check_learner
from thalweg.testing._loss import check_loss

__all__ = ["LEARNER_CHECKS", "STANDARD", "check_domain", "check_learner", "check_loss"]
