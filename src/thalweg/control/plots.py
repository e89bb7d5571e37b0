"""A picture of simulations: states, inputs and costs over time (extra `lab`).

Nothing is shown or printed, and no setting of matplotlib is changed. A new figure is no figure of pyplot: in a notebook
end the cell with it, in a script call `figure.savefig("picture.png")`; or give Axes of yours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from thalweg._core.extras import new_figure
from thalweg._core.validate import check_count, check_items, wrong
from thalweg.control.simulate import Simulation
from thalweg.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["trajectories"]

# Okabe and Ito's colours, which all kinds of colour vision tell apart.
COLOURS = ("#555555", "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7")


def trajectories(
    runs: Mapping[str, Simulation],
    *,
    states: Sequence[int] | None = None,
    inputs: Sequence[int] | None = None,
    first: int = 0,
    last: int | None = None,
    ax: Sequence[Axes] | None = None,
) -> Figure:
    """States, inputs and cost so far of one or more simulations, one below the other.

    Parameters
    ----------
    runs : mapping of name to Simulation
        The runs to compare, of the same system.
    states, inputs : sequence of int, optional
        Which of them are drawn, counted from 0; all when left out.
    first, last : int
        The rounds first..last-1; all when left out. The cost so far counts from `first`.
    ax : sequence of Axes, optional
        Where to draw: one for each state, each input and the cost, such as those of `pyplot.subplots(n + m + 1, 1)`. A
        new figure when left out.

    Returns
    -------
    matplotlib.figure.Figure
        With an Axes for each state, each input and the cost.

    Examples
    --------
    >>> from thalweg.control import LQR, QuadraticCost, double_integrator, simulate, sinusoid
    >>> from thalweg.control.plots import trajectories
    >>> system = double_integrator()
    >>> run = simulate(LQR(system), system, QuadraticCost([1, 1], [1]), sinusoid(100, [0, 1], bound=0.1))
    >>> [axis.get_ylabel() for axis in trajectories({"LQR": run}).axes]
    ['state 0', 'state 1', 'input 0', 'cost so far']
    """
    fit = isinstance(runs, Mapping) and runs and all(isinstance(run, Simulation) for run in runs.values())
    if not fit:
        raise InputError("trajectories needs a mapping of names to results of simulate.")
    sizes = {(run.states.shape[1], run.inputs.shape[1]) for run in runs.values()}
    if len(sizes) > 1:
        raise InputError(f"trajectories: the runs have different numbers of states and inputs: {sorted(sizes)}.")
    n, m = sizes.pop()
    rows = [("state", k) for k in (range(n) if states is None else _chosen("states", states))]
    rows += [("input", k) for k in (range(m) if inputs is None else _chosen("inputs", inputs))]
    missing = [f"{what} {k}" for what, k in rows if not k < (n if what == "state" else m)]
    if missing:
        raise InputError(f"trajectories: there is no {missing[0]}: the runs have {n} states and {m} inputs.")
    part = slice(
        check_count("trajectories", "first", first, least=0),
        None if last is None else check_count("trajectories", "last", last),
    )
    if ax is None:
        figure: Figure = new_figure("trajectories", 9, 1.4 * (len(rows) + 1) + 0.6)
        axes = list(figure.subplots(len(rows) + 1, 1, sharex=True, squeeze=False)[:, 0])
    else:
        axes = check_items("trajectories", "ax", ax, "a list of Axes")
        if len(axes) != len(rows) + 1 or not all(hasattr(axis, "plot") for axis in axes):
            raise wrong("trajectories", "ax", f"{len(rows) + 1} Axes, one for each state and input and the cost", ax)
        figure = axes[0].figure
    for (name, run), colour in zip(runs.items(), COLOURS * len(runs), strict=False):
        t = np.arange(run.rounds)[part]
        curves = [run.states[:-1, k] if what == "state" else run.inputs[:, k] for what, k in rows]
        for axis, curve in zip(axes, [*(c[part] for c in curves), np.cumsum(run.costs[part])], strict=True):
            axis.plot(t, curve, color=colour, linewidth=1.4, label=name)
    for axis, label in zip(axes, [*(f"{what} {k}" for what, k in rows), "cost so far"], strict=True):
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel("round")
    figure.align_ylabels(axes)
    if ax is None:
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(runs), frameon=False)
    else:
        axes[0].legend(frameon=False)
    return figure


def _chosen(name: str, given: Sequence[int]) -> list[int]:
    """Which states or inputs are drawn."""
    return [check_count("trajectories", name, k, least=0) for k in check_items("trajectories", name, given, "a list")]
