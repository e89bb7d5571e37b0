r"""Is a run any good? The losses of simple decision makers on the same rounds.

A certificate says that a run is within its theorem, and theorems are loose: a learner that never moves is within most
of them. Witnesses are cheap to compute and need no theorem:

* the centre of the set, in every round;
* the best fixed decision in hindsight;
* gradient descent from the centre with the best of a few fixed steps, eta = 4 R/g, 2 R/g, R/g, ..., g the root mean
  square of the gradients at the centre;
* the minimiser of the last round, and of the last 16 together.

A learner that pays as much as the centre, on rounds where that descent shows that there is something to learn, is
broken or badly set.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.types import Floats
from thalweg._kernels.projections import PYTHON
from thalweg.algorithms.ogd import OGD
from thalweg.domains._base import Domain
from thalweg.play import Run, play
from thalweg.problems._base import Problem
from thalweg.problems.linear_model import LinearModel
from thalweg.regret._rounds import gradients_at
from thalweg.regret.comparators import best_fixed, best_per_round
from thalweg.regret.measures import played
from thalweg.regret.windows import Windows

__all__ = ["Witness", "Witnesses", "witnesses"]

LONGER_MEMORY = 16  # rounds of the longer memory
LEARNABLE = 0.05  # of the centre's loss (signs aside): a smaller saving proves nothing


class Witness(NamedTuple):
    """A simple decision maker on the same rounds, and its total loss."""

    name: str
    loss: float


@dataclass(frozen=True)
class Witnesses:
    """A run beside simple decision makers.

    Attributes
    ----------
    loss : float
        The loss of the run.
    rows : tuple of Witness
        The centre of the set first, then the best fixed decision, descent, and further ones.
    scale : float
        The sum of the absolute losses at the centre: differences are compared with it.
    moved : bool or None
        Whether the decision ever changed; None where decisions were not recorded.
    rounds : int
        T.
    """

    loss: float
    rows: tuple[Witness, ...]
    scale: float
    moved: bool | None
    rounds: int

    @property
    def learnable(self) -> bool:
        """Whether descent saves more than 5 % of the loss of the centre: elsewhere there is no verdict."""
        return self.rows[0].loss - self.rows[2].loss > LEARNABLE * self.scale

    @property
    def accused(self) -> bool:
        """Whether the run does no better than a fixed point where descent does."""
        fixed = self.moved is False and self.loss - self.rows[2].loss > LEARNABLE * self.scale
        return fixed or (self.learnable and self.loss >= self.rows[0].loss - 1e-9 * self.scale)

    @property
    def verdict(self) -> str:
        """In plain words."""
        center, descent = self.rows[0].loss, self.rows[2]
        if self.accused and self.moved is False:
            return f"BROKEN: it never moves, and pays {self.loss - descent.loss:.4g} more than {descent.name}"
        if self.accused:
            more = self.loss - center
            words = f"{more:.4g} more than" if more > 1e-9 * self.scale else "as much as"
            return f"BROKEN: it pays {words} the centre, a fixed point"
        if not self.learnable:
            return "no verdict: descent does hardly better than the centre, so there is little to learn"
        share = (center - self.loss) / (center - descent.loss)
        return f"better than the centre: it saves {share:.3g} times as much as {descent.name}"

    def table(self) -> list[dict[str, str | float | None]]:
        """The rows as plain dictionaries, for a data frame or a CSV file.

        `ratio` is the run's loss over the witness's, None where one of the two is not positive.
        """
        return [row._asdict() | {"more": self.loss - row.loss, "ratio": self._ratio(row)} for row in self.rows]

    def _ratio(self, row: Witness) -> float | None:
        return self.loss / row.loss if min(self.loss, row.loss) > 0 else None

    def __repr__(self) -> str:
        lines = [
            f"Witnesses({self.rounds} rounds, the run paid {self.loss:.6g})",
            f"  {self.verdict}",
            f"  {'witness':<34}{'paid':>12}{'run - it':>12}{'run / it':>10}",
        ]
        for row in self.rows:
            ratio = self._ratio(row)
            share = "" if ratio is None else f"{ratio:.3g}"
            lines.append(f"  {row.name:<34}{row.loss:>12.6g}{self.loss - row.loss:>12.4g}{share:>10}")
        return "\n".join(lines)


def witnesses(run: Run | ArrayLike, problem: Problem, domain: Domain) -> Witnesses:
    """Compare a run with simple decision makers on the same rounds, which a certificate does not do.

    Parameters
    ----------
    run : Run or array (T,)
        The result of `play`, or the losses paid. With `play(..., decisions=True)` a run that never moves is reported,
        wherever it stays.
    problem, domain
        As for `static`.

    Returns
    -------
    Witnesses
        `verdict` in words, `accused` as a bool; its `repr` is a table.

    Notes
    -----
    Minimisers of the last rounds are computed for losses of a prediction on built-in sets.

    Examples
    --------
    >>> import thalweg as tw
    >>> ball = tw.domains.Ball(3)
    >>> problem = tw.problems.piecewise_stationary(ball, horizon=500, stages=4, rng=0)
    >>> seen = tw.regret.witnesses(tw.play(tw.Tracker(ball), problem), problem, ball)
    >>> seen.accused
    False
    >>> fixed = tw.regret.witnesses(problem.losses_of([0.0, 0.0, 0.0]), problem, ball)
    >>> fixed.accused, fixed.verdict
    (True, 'BROKEN: it pays as much as the centre, a fixed point')
    """
    paid, problem = played("witnesses", run, problem, domain)
    center = domain.project(domain.center)
    at_center = problem.losses_of(center)
    fixed = best_fixed(problem, domain, tol=1e-6)
    rows = [
        Witness("the centre of the set", float(at_center.sum())),
        Witness("the best fixed decision", fixed.loss),
        _descent(problem, domain, center),
        *_memories(problem, domain, center),
    ]
    moved = None
    if isinstance(run, Run) and run.decisions is not None:
        moved = bool((run.decisions != run.decisions[0]).any())
    return Witnesses(float(paid.sum()), tuple(rows), float(np.abs(at_center).sum()), moved, paid.size)


def _descent(problem: Problem, domain: Domain, center: Floats) -> Witness:
    """Gradient descent with the best of a few steps."""
    T = len(problem)
    gradients = gradients_at(problem, np.broadcast_to(center, (T, *domain.shape)))
    size = float(np.sqrt((gradients**2).sum() / T)) or 1.0
    steps = 4 * domain.radius / size * 0.5 ** np.arange(5 + T.bit_length() // 2)
    losses = [play(OGD(domain, step_size=float(step)), problem).total_loss for step in steps]
    best = int(np.argmin(losses))
    return Witness(f"descent with step {steps[best]:.3g}", losses[best])


def _memories(problem: Problem, domain: Domain, center: Floats) -> list[Witness]:
    """The minimisers of the rounds just seen; the centre in the first."""
    T = len(problem)
    if not isinstance(problem, LinearModel) or domain.onto is PYTHON or T == 1:
        return []

    def witness(name: str, rows: Floats) -> Witness:
        return Witness(
            f"minimiser of the last {name}", float(problem.losses_of(np.vstack([center.ravel(), rows])).sum())
        )

    if problem.loss != "squared":
        return [witness("round", best_per_round(problem, domain, tol=1e-6).decisions.reshape(T, -1)[:-1])]
    windows, stops = Windows(problem, domain, 1e-6), np.arange(1, T)
    return [
        witness(name, windows.fits(np.maximum(stops - n, 0), stops, lambda _: None)[0])
        for n, name in ((1, "round"), (LONGER_MEMORY, f"{LONGER_MEMORY} rounds"))
    ]
