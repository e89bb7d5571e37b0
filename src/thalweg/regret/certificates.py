r"""Certificates: was the regret of a run within the bound of the theorem?

For a learner whose card names a theorem, `certify` evaluates the bound with explicit constants
(`thalweg.theorems.bounds`) for a run and a comparator, on the whole run or on each requested interval, and checks that
the assumptions hold. Covers enter as they were in the run: the bound of an interval adds up the pieces between the
markers actually set, and the stretch before the first of them.

A bound for every comparator also holds for the one that was computed, so optimality gaps do not matter.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg._core.html import row_table
from thalweg._core.progress import progress_bar
from thalweg._core.types import Floats
from thalweg._core.validate import check_items, short_repr, wrong
from thalweg.cards import recipes
from thalweg.errors import InputError
from thalweg.learners.base import Learner
from thalweg.learners.feedback import BOUND_SLACK
from thalweg.play import Run
from thalweg.problems._base import Problem
from thalweg.problems.linear_model import LinearModel
from thalweg.regret._rounds import check_window, digest, gradients_at
from thalweg.regret.comparators import Comparator
from thalweg.regret.measures import comparator_of, played
from thalweg.regret.windows import Windows
from thalweg.theorems._base import Theorem

__all__ = ["Assumption", "Certificate", "CertifiedInterval", "certify"]

Window = tuple[int, int]
Given = Comparator | ArrayLike | Mapping[str, Comparator | ArrayLike] | None

SHORTEST_INTERVAL = 16  # rounds of the shortest dyadic interval: on shorter ones the constants alone allow any regret
FEASIBLE, TRIED = 1e-6, 1000  # relative distance from the domain that rounding may cause, and decisions that are tried


class Assumption(NamedTuple):
    """An assumption of a theorem: whether it held (None: could not be checked), and the evidence."""

    name: str
    held: bool | None
    seen: str


class CertifiedInterval(NamedTuple):
    """Regret on rounds [start, stop) against a comparator, and the bound of the theorem."""

    start: int
    stop: int
    against: str
    regret: float
    bound: float

    @property
    def slack(self) -> float:
        """bound - regret: negative where the bound is violated."""
        return self.bound - self.regret


class _Low(NamedTuple):
    """The least loss so far, at a decision or a comparator, and its location."""

    loss: float
    where: str


@dataclass(frozen=True)
class Certificate:
    """A theorem evaluated on a run.

    Attributes
    ----------
    name : str
        The learner and its theorem.
    rows : tuple of CertifiedInterval
        Regret and bound, interval by interval.
    assumptions : tuple of Assumption
        The assumptions of the theorem.
    """

    name: str
    rows: tuple[CertifiedInterval, ...]
    assumptions: tuple[Assumption, ...]
    run: str = ""  # a digest of the losses of the run; "" if unknown

    @property
    def holds(self) -> bool:
        """Whether every regret is within its bound (up to rounding)."""
        return all(row.slack >= -1e-9 * (1 + abs(row.regret)) for row in self.rows)

    @property
    def slack(self) -> float:
        """The smallest bound - regret."""
        return min(row.slack for row in self.rows)

    @property
    def tightest(self) -> CertifiedInterval:
        """The interval whose regret is the largest share of its bound."""
        return max(self.rows, key=lambda row: row.regret / row.bound)

    @property
    def failed(self) -> tuple[Assumption, ...]:
        """The assumptions that did not hold. If there are any, the theorem guarantees nothing."""
        return tuple(assumption for assumption in self.assumptions if assumption.held is False)

    @property
    def violated(self) -> bool:
        """Whether a regret exceeds its bound although every assumption was checked and held: the learner is broken."""
        return not self.holds and all(assumption.held for assumption in self.assumptions)

    def table(self) -> list[dict[str, str | float]]:
        """The rows as plain dictionaries, for a data frame or a CSV file."""
        return [row._asdict() | {"slack": row.slack} for row in self.rows]

    def _repr_html_(self) -> str:
        heads = ("interval", "against", "regret", "bound", "slack")
        rows = [(f"[{row.start}, {row.stop})", row.against, row.regret, row.bound, row.slack) for row in self.rows]
        return row_table(repr(self).partition("\n")[0], heads, rows)

    def __repr__(self) -> str:
        broken = sum(row.slack < 0 for row in self.rows)
        many = f"{len(self.rows)} intervals" if len(self.rows) > 1 else "1 interval"
        verdict = f"holds on {many}"
        if self.violated:
            verdict = f"VIOLATED on {broken} of {many}"
        elif not self.holds:
            why = (
                "an assumption failed, so it promises nothing" if self.failed else "unless an unknown assumption failed"
            )
            verdict = f"exceeded on {broken} of {many}, {why}"
        tight = self.tightest
        lines = [
            f"Certificate({self.name}: {verdict}, least slack {self.slack:.4g})",
            f"  tightest: [{tight.start}, {tight.stop}) against {tight.against}: "
            f"regret {tight.regret:.6g} of {tight.bound:.6g} allowed",
        ]
        words = {True: "held", False: "FAILED", None: "unknown"}
        return "\n".join(lines + [f"  {words[a.held]}: {a.name} ({a.seen})" for a in self.assumptions])


def certify(
    learner: Learner,
    problem: Problem,
    run: Run | ArrayLike,
    *,
    comparators: Given = None,
    intervals: str | Sequence[Window] | None = None,
    progress: bool = False,
) -> Certificate:
    r"""Check a run against the theorem of its learner.

    Parameters
    ----------
    learner : Learner
        The learner after the run, with a theorem on its card: `EfficientDynamic` (Theorems 2 and 3),
        `EfficientAdaptive` (4), `EfficientIntervalDynamic` (5), the other efficient ones, `OGD`, `SOGD`, `Scream`, or
        your own. It must have played exactly these rounds.
    problem : Problem
        The rounds.
    run : Run or array (T,)
        The result of `play`, or the losses paid. With `play(..., decisions=True)` the lengths of the gradients are
        checked as well.
    comparators : optional
        u_t, or several such sequences by name; by default the planted ones, if there are any. The best fixed decision
        of each interval is always checked too. Theorem 4 is for fixed decisions only.
    intervals : "dyadic", "whole" or sequence of (start, stop), optional
        Rounds [start, stop), counted from 0. "dyadic", the default for theorems on every interval: adjacent intervals
        of lengths 16, 32, 64, ..., and the whole run. "whole", the default for theorems on intervals that start with
        the run: only the whole run.
    progress : bool
        Whether to show a progress bar (extra `lab`).

    Examples
    --------
    >>> import thalweg as tw
    >>> ball = tw.domains.Ball(3)
    >>> problem = tw.problems.piecewise_stationary(ball, horizon=500, stages=4, rng=0)
    >>> learner = tw.EfficientDynamic(ball, 500, problem.gradient_bound(ball), problem.smoothness)
    >>> run = tw.play(learner, problem, decisions=True)
    >>> certificate = tw.regret.certify(learner, problem, run)
    >>> certificate.holds, certificate.failed
    (True, ())
    """
    theorem = learner.card.theorem if isinstance(learner, Learner) and learner.card is not None else None
    if theorem is None:
        known = ", ".join(dict.fromkeys(r.kind.__name__ for r in recipes().values() if r.card.theorem is not None))
        raise InputError(
            f"certify knows the theorems of {known}. Got {short_repr(learner)}. "
            "A class of your own names its theorem on its card: see thalweg.cards."
        )
    paid, problem = played("certify", run, problem, learner.domain)
    if learner.rounds != paid.size:
        raise InputError(
            f"certify needs the learner as it is after the run: it has played {learner.rounds} rounds, the run has "
            f"{paid.size}. Play a fresh learner, then certify it."
        )
    decisions = run.decisions if isinstance(run, Run) else None
    if decisions is not None:
        _check_feasible(learner, decisions)
    squares = _squares(learner, problem, decisions)
    allowed = theorem(learner, paid, squares)
    windows = _windows(problem, intervals, allowed)
    moving = {} if allowed.still else _named(problem, comparators)
    solver = Windows(problem, learner.domain, 1e-4)  # the theorem holds for every comparator, so a rough one will do
    floor = 0.0 if allowed.small_loss else allowed.floor
    rows, lowest = [], _Low(float(paid.min()), f"in round {int(paid.argmin())}")
    with progress_bar("certify", len(windows), progress, "interval") as tick:
        for r, s in windows:
            part = problem[r:s]
            w = solver.fit(r, s)[0]
            fixed = np.broadcast_to(w, (s - r, w.size))
            pairs = {"best fixed": (fixed, part.losses_of(w.reshape(problem.shape)))}
            pairs |= {name: (u.decisions.reshape(paid.size, -1)[r:s], u.losses[r:s]) for name, u in moving.items()}
            for name, (u, losses) in pairs.items():
                regret = float(paid[r:s].sum() - losses.sum())
                lowest = min(lowest, _Low(float(losses.min()), f"of '{name}' in round {r + int(losses.argmin())}"))
                assumed = losses if floor is None else np.maximum(losses, floor)
                bound = allowed.bound(r, s, u, assumed)
                if np.isnan(bound):
                    raise InputError(f"certify: the bound of '{allowed.name}' on rounds {r} to {s - 1} is nan.")
                rows.append(CertifiedInterval(r, s, name, regret, bound))
            tick(1)
    checks = _assumptions(learner, allowed, problem, decisions, paid, squares, moving, floor, lowest)
    return Certificate(f"{type(learner).__name__}, {allowed.name}", tuple(rows), tuple(checks), digest(paid))


def _check_feasible(learner: Learner, decisions: Floats) -> None:
    """Refuse a run with decisions outside of the domain, of which theorems say nothing. At most TRIED are tried."""
    X = learner.domain
    for t in range(0, len(decisions), -(-len(decisions) // TRIED)):
        if not X.contains(decisions[t], tol=FEASIBLE):
            raise InputError(
                f"certify: the decision of round {t} is no point of {X!r}: {short_repr(decisions[t])}. "
                f"{type(learner).__name__} must project its decisions."
            )


def _windows(problem: Problem, intervals: str | Sequence[Window] | None, theorem: Theorem) -> list[Window]:
    T = len(problem)
    if intervals is None:
        intervals = "whole" if theorem.whole else "dyadic"
    if isinstance(intervals, str) and intervals == "whole":
        return [(0, T)]
    if isinstance(intervals, str) and intervals == "dyadic":
        lengths = [2**k for k in range(T.bit_length()) if SHORTEST_INTERVAL <= 2**k < T]
        found = [(r, r + n) for n in lengths for r in range(0, T - n + 1, n)] + [(0, T)]
    elif isinstance(intervals, str):
        raise InputError(
            f"The 'intervals' parameter of certify must be 'dyadic', 'whole' or pairs. Got {short_repr(intervals)}."
        )
    else:
        pairs = [
            check_items("certify", "intervals", pair, "pairs")
            for pair in check_items("certify", "intervals", intervals, "pairs")
        ]
        if any(len(pair) != 2 for pair in pairs):
            raise wrong("certify", "intervals", "pairs (start, stop)", intervals)
        found = [check_window("certify", problem, *pair) for pair in pairs]
    if theorem.whole and any(r > 0 for r, _ in found):
        raise InputError(f"{theorem.name} speaks of intervals that start with the run: (0, stop). Got {found[:3]}.")
    if not found:
        raise InputError("The 'intervals' parameter of certify must hold at least one interval.")
    return found


def _named(problem: Problem, given: Given) -> dict[str, Comparator]:
    if given is None:
        if getattr(problem, "comparators", None) is None:
            return {}
        return {"planted": comparator_of("certify", problem, None)}
    if isinstance(given, Mapping):
        return {name: comparator_of("certify", problem, u) for name, u in given.items()}
    return {"given": comparator_of("certify", problem, given)}


def _squares(learner: Learner, problem: Problem, decisions: Floats | None) -> Floats:
    """Return ||grad f_t(x_t)||^2 as seen by the learner in every round: measured if decisions are known, else G^2."""
    if decisions is not None:
        gradients = gradients_at(problem, decisions)
        if learner.flattens:
            gradients = learner.domain._directions(gradients)
        squares: Floats = np.einsum("td,td->t", gradients, gradients)
        return squares
    if learner.gradient_bound is None:
        raise InputError(
            f"{type(learner).__name__} has no gradient bound, so certify needs the gradients it saw: call "
            "play(..., decisions=True)."
        )
    return np.full(len(problem), learner.gradient_bound**2)


def _assumptions(
    learner: Any,
    theorem: Theorem,
    problem: Problem,
    decisions: Floats | None,
    paid: Floats,
    squares: Floats,
    moving: Mapping[str, Comparator],
    floor: float | None,
    lowest: _Low,
) -> Iterator[Assumption]:
    """Yield the assumptions of the theorem, checked on the run."""
    G = learner.gradient_bound
    if G is not None:
        name = f"gradients at most G = {G:g}"
        if learner.clipped:
            yield Assumption(name, False, f"{learner.clipped} were longer and clipped")
        elif decisions is None:
            yield Assumption(name, True, "longer ones are refused")
        else:
            longest = float(np.sqrt(squares.max()))
            held = longest <= G * (1 + BOUND_SLACK)
            where = "" if held else f", in round {int(np.argmax(squares))}"
            yield Assumption(name, held, f"longest {longest:.4g}{where}")
    if floor is not None:
        yield _above(floor, lowest, float(np.abs(paid).max()))
    if theorem.small_loss:
        yield _smooth(learner, problem)
        yield _outside(learner, problem, decisions, paid, squares)
    lam = getattr(learner, "strong_convexity", None)
    if lam is not None:
        flat = isinstance(problem, LinearModel) and learner.domain.dim > 1
        seen = "a loss of a prediction is flat across its features" if flat else "losses of your own"
        yield Assumption(f"losses strongly convex with lambda = {lam:g}", False if flat else None, seen)
    if learner.horizon is not None and not learner.anytime:
        T = paid.size
        yield Assumption(f"at most T = {learner.horizon} rounds", learner.horizon >= T, f"{T} rounds")
    if getattr(learner, "feedback_range", None) == "observed":
        yield Assumption("feedback within 2GR", False, "feedback_range='observed': no guarantee while the range grows")
    for name, u in moving.items():
        points = np.unique(u.decisions.reshape(len(u.losses), -1), axis=0)
        out = sum(not learner.domain.contains(point.reshape(problem.shape), 1e-6) for point in points)
        yield Assumption(f"comparators in the domain: {name}", out == 0, f"{out} of {len(points)} points outside")


def _above(floor: float, lowest: _Low, largest: float) -> Assumption:
    """Check that no loss is below the floor, as the proofs assume. Losses at decisions alone do not show it."""
    held = lowest.loss >= floor - BOUND_SLACK * max(abs(floor), largest)
    return Assumption(f"losses >= {floor:g}", held, f"least {lowest.loss:.4g}" + ("" if held else f", {lowest.where}"))


def _outside(learner: Any, problem: Problem, decisions: Floats | None, paid: Floats, squares: Floats) -> Assumption:
    """Check ||grad f(x)||^2 <= 2 L f(x) at the decisions; it follows from f >= 0 at x - grad f(x)/L, in X or not."""
    name = "losses >= 0 outside the domain too"
    if isinstance(problem, LinearModel) and problem.nonnegative:
        return Assumption(name, True, f"the {problem.loss} loss is never negative")
    if decisions is None:
        return Assumption(name, None, "play(..., decisions=True) to check")
    most = 2 * learner.smoothness * paid
    t = int(np.argmax(squares - most))
    held = bool(squares[t] <= most[t] + BOUND_SLACK * squares[t])
    where = "in every round" if held else f"not in round {t}: {squares[t]:.4g} and {most[t]:.4g}"
    return Assumption(name, held, f"||gradient||^2 <= 2 L loss {where}")


def _smooth(learner: Any, problem: Problem) -> Assumption:
    name = f"losses smooth with L = {learner.smoothness:g}"
    if not isinstance(problem, LinearModel):
        return Assumption(name, None, "losses of your own")
    L = problem.smoothness_on(learner.domain) if learner.flattens else problem.smoothness
    if L is None:
        return Assumption(name, False, f"the {problem.loss} loss {'has a kink' if problem.kinked else 'is not smooth'}")
    return Assumption(name, learner.smoothness * (1 + BOUND_SLACK) >= L, f"L = {L:.4g}")
