"""Progress bars on request: whatever takes long draws one, without them it is silent, and the results are the same."""

import sys

import numpy as np
import pytest

import thalweg as tw
from tests.regret.cases import DISC, FINE
from thalweg.errors import MissingExtraError
from thalweg.regret import adaptive, best_path, certify, plots

PLANTED = tw.problems.LinearRegression(FINE.features, FINE.labels, comparators=np.zeros((6, 2)))


def certified(**options):
    learner = tw.OGD(DISC, horizon=6, gradient_bound=PLANTED.gradient_bound(DISC))
    return repr(certify(learner, PLANTED, tw.play(learner, PLANTED), **options))


def recorded(**options):
    return plots.record_cover(tw.EfficientCBCE(DISC, gradient_bound=20.0), FINE, **options).weights.tolist()


# by name: the unit of the bar, how many there are of it, and the call
LONG = {
    "play": ("round", 6, lambda **options: tw.play(tw.SOGD(DISC), FINE, **options).losses.tolist()),
    "best_path": ("step", 4000, lambda **options: best_path(FINE, DISC, price=0.5, **options).decisions.tolist()),
    "adaptive": ("interval", 6 + 5 + 3 + 1, lambda **options: adaptive(np.ones(6), FINE, DISC, **options).rows),
    "certify": ("interval", 1, certified),
    "record_cover": ("round", 6, recorded),
}


@pytest.mark.parametrize("name", LONG)
def test_a_progress_bar_on_request(name, capsys):
    unit, count, call = LONG[name]
    silent = call()
    assert capsys.readouterr() == ("", "")
    assert call(progress=True) == silent
    out, err = capsys.readouterr()
    assert out == ""
    assert unit in err
    assert f"/{count}" in err.replace(".00k", "000")


@pytest.mark.parametrize("name", LONG)
def test_a_progress_bar_needs_tqdm(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(MissingExtraError, match=rf"{name}\(progress=True\) needs tqdm. .* 'thalweg\[lab\]'"):
        LONG[name][2](progress=True)
