"""Cards: guarantee, requirements and recipe of a learner; the catalog and the tables are made of them.

A class with a card of its own (`card = Card(...)` in its body) is known from then on, wherever it was written: `thalweg
list` names it, the laboratory builds it by name, `thalweg.regret.certify` finds its theorem.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from thalweg._core.validate import check_count, check_flag, real_number, wrong
from thalweg.domains._base import Domain, read_domain
from thalweg.errors import InputError
from thalweg.learners.base import Learner
from thalweg.learners.one_projection import OneProjection

if TYPE_CHECKING:
    from thalweg.theorems._base import Theorem

__all__ = ["KINDS", "Card", "Recipe", "Setting", "Variant", "markdown", "recipes"]

REGRETS = ("static", "dynamic", "adaptive", "interval dynamic")
KINDS: dict[str, type[Learner]] = {}  # every class with a card of its own, by name


@dataclass(frozen=True)
class Setting:
    """Everything known before the first round: the set, and constants that hold in every round.

    Attributes
    ----------
    domain : Domain
        X.
    horizon : int
        T.
    gradient_bound : float
        G, at least the length of any gradient on X.
    loss_bound : float
        B, at least any loss on X.
    smoothness : float, optional
        L; None where the losses are not smooth.
    nonnegative : bool
        Whether no loss is negative.
    """

    domain: Domain
    horizon: int
    gradient_bound: float
    loss_bound: float
    smoothness: float | None = None
    nonnegative: bool = False

    def __post_init__(self) -> None:
        read_domain("Setting", self.domain)
        check_count("Setting", "horizon", self.horizon)
        check_flag("Setting", "nonnegative", self.nonnegative)
        for name in ("gradient_bound", "loss_bound", "smoothness"):
            value = getattr(self, name)
            if value is None and name == "smoothness":
                continue
            number = real_number(value)
            if not number >= 0:
                raise wrong("Setting", name, "a number >= 0", value)
            object.__setattr__(self, name, number)

    @property
    def spread(self) -> float:
        """At least the difference of any two values that a loss takes on X."""
        lipschitz = self.gradient_bound * self.domain.diameter
        return min(self.loss_bound, lipschitz) if self.nonnegative else lipschitz

    @property
    def small_loss(self) -> bool:
        """Whether losses are smooth and never negative."""
        return self.smoothness is not None and self.nonnegative


Arguments = Callable[[Setting], Mapping[str, object]]


@dataclass(frozen=True)
class Variant:
    """A learner with other arguments, by a name of its own; fields left out are those of the card.

    Attributes
    ----------
    about : str
        One line.
    options, arguments
        Those that differ; see `Card`.
    bound : str, optional
        The order of its regret.
    queries : tuple of 3 str, optional
        Projections, gradients and values of a round. A variant that states them has a row in the table of
        docs/algorithms.md.
    source : str, optional
        Its publication.
    """

    about: str
    options: Mapping[str, object] = field(default_factory=dict)
    arguments: Arguments = lambda s: {}
    bound: str | None = None
    queries: tuple[str, str, str] | None = None
    source: str | None = None


@dataclass(frozen=True)
class Card:
    """The description of a learner.

    Attributes
    ----------
    about : str
        One line.
    regret : {"static", "dynamic", "adaptive", "interval dynamic"}
        The kind of regret that it bounds.
    bound : str
        The order of its regret. P is the length of the comparators' path, F their loss, I an interval.
    queries : tuple of 3 str
        Projections, gradients and values of a round.
    source : str
        Its publication.
    arguments : callable
        `arguments(setting)`: arguments by name. Those that a `Setting` has by the same name are taken from it unless
        they are given here.
    options : mapping
        Further arguments, the same in every setting.
    theorem : Theorem class, optional
        Its bound with constants.
    smooth : bool
        Whether it needs losses that are smooth and never negative.
    variants : mapping
        Other settings of it: "eager" of `SACS` is called `SACS-eager`.

    Examples
    --------
    >>> import thalweg as tw
    >>> tw.Ader.card.regret, tw.Ader.card.queries
    ('dynamic', ('N', '1', '0'))
    """

    about: str
    regret: str
    bound: str
    queries: tuple[str, str, str]
    source: str
    arguments: Arguments = lambda s: {}
    options: Mapping[str, object] = field(default_factory=dict)
    theorem: type[Theorem] | None = None
    smooth: bool = False
    variants: Mapping[str, Variant] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.regret not in REGRETS:
            raise InputError(f"The 'regret' of a Card must be one of {', '.join(REGRETS)}. Got {self.regret!r}.")

    def __set_name__(self, kind: type[Learner], name: str) -> None:
        KINDS[kind.__name__] = kind

    def of(self, variant: Variant) -> Card:
        """The card of a variant."""
        return replace(
            self,
            about=variant.about,
            bound=variant.bound or self.bound,
            queries=variant.queries or self.queries,
            source=variant.source or self.source,
            arguments=lambda s: {**self.arguments(s), **variant.arguments(s)},
            options={**self.options, **variant.options},
            variants={},
        )


@dataclass(frozen=True)
class Recipe:
    """A learner or a variant of one by name: its class, its card and how to build it."""

    name: str
    kind: type[Learner]
    card: Card
    tabled: bool = True  # whether it has a row in the table of docs/algorithms.md

    def build(self, setting: Setting) -> Learner:
        """A fresh learner.

        Examples
        --------
        >>> import thalweg as tw
        >>> setting = tw.cards.Setting(tw.domains.Ball(2), horizon=100, gradient_bound=3.0, loss_bound=4.5)
        >>> tw.cards.recipes()["CBCE"].build(setting)
        CBCE(Ball(2, radius=1), gradient_bound=3, gradients='own', loss_bound=6, horizon=100; 0 rounds played)
        """
        taken = inspect.signature(self.kind).parameters
        known = {name: value for name, value in vars(setting).items() if name in taken}
        return self.kind(**{**known, **self.card.arguments(setting), **self.card.options})

    @property
    def call(self) -> str:
        """The call in Python, without the arguments that the setting gives."""
        defaults = {name: p.default for name, p in inspect.signature(self.kind.__init__).parameters.items()}
        options = [
            f'{key}="{value}"' if isinstance(value, str) else f"{key}={value}"
            for key, value in self.card.options.items()
            if value != defaults.get(key)
        ]
        return self.kind.__name__ + (f"({', '.join(options)})" if options else "")


def recipes() -> dict[str, Recipe]:
    """Every learner with a card and its variants, by name: by regret, those with one projection after the others."""
    found: dict[str, Recipe] = {}
    for name, kind in sorted(KINDS.items(), key=_table_order):
        card = kind.card
        assert card is not None  # that is how it came into KINDS
        found[name] = Recipe(name, kind, card)
        for key, variant in card.variants.items():
            full = f"{name}-{key}"
            found[full] = Recipe(full, kind, card.of(variant), tabled=variant.queries is not None)
    return found


def _table_order(item: tuple[str, type[Learner]]) -> tuple[int, bool, str]:
    name, kind = item
    assert kind.card is not None
    return REGRETS.index(kind.card.regret), _reduced(kind), name


def _reduced(kind: type[Learner]) -> bool:
    """Whether a learner has one projection by the reduction."""
    return issubclass(kind, OneProjection) or getattr(kind, "reduced", False)


def markdown() -> str:
    """The table of docs/algorithms.md; learners with one projection a round are bold."""
    lines = ["| learner | projections | gradients | values | regret | of order | source |", "|" + "---|" * 7]
    for recipe in recipes().values():
        card, bold = recipe.card, "**" if _reduced(recipe.kind) else ""
        if recipe.tabled:
            cells = [f"{bold}`{recipe.call}`{bold}", *(f"{bold}{count}{bold}" for count in card.queries)]
            cells += [card.regret, card.bound.replace("|", r"\|"), card.source]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
