"""The page for those who come from another library: it knows every name of theirs, and every name of ours exists."""

import ast
import importlib
import inspect
import pathlib
import re

import pytest

import thalweg as tw
import thalweg.estimators

PAGE = (pathlib.Path(__file__).parents[1] / "docs" / "migration.md").read_text(encoding="utf-8")
PARTS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))

# Every public class and function of PyNOL 0.1 (commit 350c2982), by module.
PYNOL = {
    "environment": "Domain Ball Simplex Environment LossFunction InnerLoss SquareLoss LogisticLoss FuncWithSwitch",
    "base": "Base OGD BGDOnePoint BGDTwoPoint SOGD OEGD OptimisticBase OptimisticOGD OptimisticHedge Hedge",
    "meta": "OptimisticLR Meta OptimisticMeta OptimisticHedge Hedge MSMWC Prod AdaNormalHedge AFLHMeta",
    "models": "Model Ader SwordVariation SwordSmallLoss SwordBest SwordPP Scream PBGDOnePoint PBGDTwoPoint AFLH SACS "
    "PSACS SAOL",
    "schedule": "SSP StepSizeFreeSSP DiscreteSSP Cover FullCover GC CGC PCover PGC PCGC Schedule PSchedule",
    "specification": "OptimismBase EnvironmentalOptimismBase LastGradOptimismBase OptimismMeta InnerOptimismMeta "
    "InnerSwitchingOptimismMeta SwordVariationOptimismMeta SwordBestOptimismMeta Perturbation OnePointPerturbation "
    "TwoPointPerturbation SurrogateBase LinearSurrogateBase InnerSurrogateBase SurrogateMeta SurrogateMetaFromBase "
    "InnerSurrogateMeta InnerSwitchingSurrogateMeta",
    "utils": "LinearRegressionGenerator plot online_learning multiple_online_learning",
}


def rows(part):
    """(theirs, ours) of every row of the tables of a part."""
    lines = [line for line in PARTS[part].splitlines() if line.startswith("|") and not line.startswith("|---")]
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    assert all(len(row) == 2 for row in cells), cells
    return cells


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("module", PYNOL)
def test_every_name_of_pynol_has_a_row(module):
    known = {name for theirs, _ in rows("PyNOL") for text in code(theirs) for name in re.findall(r"\w+", text)}
    assert set(PYNOL[module].split()) <= known


def found(name):
    """What tw.name is."""
    part = tw
    for word in name.split("."):
        assert hasattr(part, word), f"tw.{name}"
        part = getattr(part, word)
    return part


def test_every_name_of_ours_exists():
    names = set(re.findall(r"\btw\.((?:\w+\.)*\w+)", PAGE))
    assert len(names) > 30
    assert all(found(name) is not None for name in names)


def test_every_call_of_ours_has_arguments_that_exist():
    calls = 0
    for text in (text for part in PARTS for _, ours in rows(part) for text in code(ours) if text.startswith("tw.")):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                taken = inspect.signature(found(ast.unparse(node.func).removeprefix("tw."))).parameters
                assert {word.arg for word in node.keywords} <= set(taken), text
                calls += 1
    assert calls > 25


@pytest.mark.parametrize("part", PARTS)
def test_every_class_of_ours_is_public(part):
    """Names that start a piece of code in the right column."""
    names = {text.split("(")[0] for _, ours in rows(part) for text in code(ours) if re.match(r"[A-Z]\w*\(", text)}
    assert all(hasattr(thalweg.estimators, name) for name in names), names


def test_every_name_of_river_exists():
    pytest.importorskip("river")
    texts = [text for theirs, _ in rows("river") for text in code(theirs)]
    pairs = {pair for text in texts for pair in re.findall(r"\b([a-z_]+)\.([A-Z]\w+)", text)}
    assert len(pairs) >= 6
    for module, name in pairs:
        assert hasattr(importlib.import_module(f"river.{module}"), name), f"river.{module}.{name}"
