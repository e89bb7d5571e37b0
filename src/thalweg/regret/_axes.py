"""Common parts of the pictures: axes, colours, words and legends."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from thalweg._core.extras import new_figure
from thalweg._core.validate import short_repr
from thalweg.errors import InputError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["axes", "colors", "describe", "legend", "plain"]

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
SEARCHED = 200_000  # points among which matplotlib may look for a free corner for a legend


def axes(owner: str, ax: object, *, width: float = 9.0, height: float = 4.2) -> tuple[Axes, bool]:
    """The Axes to draw on, and whether they are ours. A new figure is not pyplot's: nothing global changes."""
    if ax is not None:
        if not hasattr(ax, "plot") or not hasattr(ax, "figure"):
            raise InputError(f"The 'ax' parameter of {owner} must be one matplotlib Axes. Got {short_repr(ax)}.")
        return cast("Axes", ax), False
    return new_figure(owner, width, height).add_subplot(), True


def colors(ax: Axes, reverse: bool = False) -> Iterator[tuple[str, str]]:
    """Colour and style of the next line: first the colours that no line of the Axes has."""
    from matplotlib.colors import to_hex

    palette = PALETTE[::-1] if reverse else PALETTE
    used = {to_hex(line.get_color()) for line in ax.get_lines()}
    yield from ((color, "-") for color in palette if color not in used)
    for style in itertools.cycle(("-.", ":", "-")):
        yield from ((color, style) for color in palette)


def describe(ax: Axes, x: str, y: str, title: str) -> None:
    """Set labels and title where the caller has not."""
    if not ax.get_xlabel():
        ax.set_xlabel(x)
    if not ax.get_ylabel():
        ax.set_ylabel(y)
    if not ax.get_title():
        ax.set_title(title, fontsize="medium")


def plain(text: str) -> str:
    """Return a name from data as matplotlib shows it: dollar signs are no formula."""
    return text.replace("$", r"\$")


def legend(ax: Axes, own: bool, notes: Mapping[str, Artist] | None = None) -> None:
    """A legend that covers no data: beside our own Axes, in the emptiest corner of others."""
    handles, labels = ax.get_legend_handles_labels()
    handles, labels = [*handles, *(notes or {}).values()], [*labels, *(notes or {})]
    if own:
        ax.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False)
    else:
        few = sum(np.size(line.get_xdata()) for line in ax.get_lines()) <= SEARCHED
        ax.legend(handles, labels, loc="best" if few else "upper left", framealpha=0.8)
