"""What notebooks show: `_repr_html_` of learners, estimators and results."""

from html.parser import HTMLParser

import numpy as np
import pytest

import thalweg as tw
from thalweg._core.html import MOST_ROWS, fact_table, row_table


class Cells(HTMLParser):
    """The text of all cells; tags must close in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += text


def played():
    domain = tw.domains.Ball(3)
    problem = tw.problems.piecewise_stationary(domain, 64, 4, rng=0)
    learner = tw.EfficientAdaptive(
        domain, 64, gradient_bound=problem.gradient_bound(domain), smoothness=problem.smoothness
    )
    return learner, problem, tw.play(learner, problem, decisions=True)


def test_a_learner_shows_arguments_rounds_and_size():
    learner, _, _ = played()
    cells = Cells(learner._repr_html_()).cells
    assert cells[:4] == ["domain", "Ball(3, radius=1)", "horizon", "64"]
    assert cells[cells.index("rounds") + 1] == "64"
    assert cells[-1] == f"{learner._memory.block.memory.nbytes / 1000:.1f} kB of state"


def test_results_show_their_numbers():
    learner, problem, run = played()
    cells = Cells(run._repr_html_()).cells
    assert cells[cells.index("total loss") + 1] == f"{run.total_loss:.6g}"
    assert cells[cells.index("projections a round") + 1] == "1"
    regret = tw.regret.dynamic(run, problem)
    assert f"{regret.value:.6g}" in Cells(regret._repr_html_()).cells
    worst = tw.regret.adaptive(run, problem, learner.domain)
    assert len(Cells(worst._repr_html_()).cells) == 4 * (1 + min(len(worst), MOST_ROWS))
    certificate = tw.regret.certify(learner, problem, run)
    assert "Certificate(" in certificate._repr_html_()
    assert f"{certificate.rows[0].bound:.6g}" in Cells(certificate._repr_html_()).cells


def test_a_forecast_shows_every_step_and_level():
    forecaster = tw.estimators.Forecaster(horizon=3, levels=(0.8, 0.95))
    forecaster.run(np.arange(40.0))
    forecast = forecaster.forecast()
    cells = Cells(forecast._repr_html_()).cells
    assert cells[:6] == ["step", "forecast", "80 % from", "to", "95 % from", "to"]
    assert cells[6:8] == ["1", f"{forecast.mean[0]:.6g}"]
    assert len(cells) == 6 * 4


@pytest.mark.parametrize(
    "table", [lambda text: fact_table(text, [(text, text)]), lambda text: row_table(text, [text], [[text]])]
)
def test_text_is_escaped(table):
    page = table("<script>alert('&')</script>")
    assert "<script>" not in page
    assert Cells(page).cells[0] == "<script>alert('&')</script>"


def test_long_tables_are_cut_and_say_so():
    page = row_table("t", ["k"], [[k] for k in range(MOST_ROWS + 7)])
    assert len(Cells(page).cells) == 1 + MOST_ROWS
    assert "7 more rows" in page


def test_a_fleet_shows_its_keys():
    fleet = tw.Fleet(tw.estimators.Forecaster())
    fleet.update(["a", "b", "a"], [1.0, 2.0, 3.0])
    cells = Cells(fleet._repr_html_()).cells
    assert cells[cells.index("keys") + 1] == "2"
