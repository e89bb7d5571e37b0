"""Linear models of one target that learn row by row, with nothing to tune: members, guests, a jury or shares."""

from thalweg.parts.linear.plan import WIDEST, LinearLayout, moved

__all__ = ["WIDEST", "LinearLayout", "moved"]
