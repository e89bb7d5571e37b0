"""What the one-projection methods over a cover have in common."""

from thalweg.cover import Cover
from thalweg.one_projection import OneProjection

__all__ = ["ReducedCover"]


class ReducedCover(OneProjection):
    """A `Cover` inside the reduction."""

    inner: Cover

    @property
    def active(self) -> int:
        """How many experts are alive in the present round."""
        return self.inner.active

    @property
    def marker_count(self) -> int:
        """m, how many unit intervals have started."""
        return self.inner.marker_count

    @property
    def markers(self) -> list[int]:
        """The rounds, counted from 1, at which unit intervals start."""
        return self.inner.markers
