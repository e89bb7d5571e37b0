"""The Tracker on a ball: `kernels` has its state and its round, `machine` plans and checks them."""

from thalweg.learners.tracker.kernels import TrackerSettings, TrackerState
from thalweg.learners.tracker.machine import Tracking

__all__ = ["TrackerSettings", "TrackerState", "Tracking"]
