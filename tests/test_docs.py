"""What the documentation shows runs: Python in order, one namespace a page, and commands as they are typed.

Every page runs in a folder of its own with `load.csv`, the file of `thalweg sample`. A block under a comment
`<!-- not run: why -->` is left out. Studies, which take minutes, are only asked whether they know their options.
"""

import contextlib
import doctest
import io
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from thalweg.lab.commands import app
from thalweg.lab.sample import demand
from thalweg.lab.streams import installed

ROOT = pathlib.Path(__file__).parents[1]
PAGES = {path.name: path for path in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md")}
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<why>[^>]+) -->\n)?^```(?P<kind>python|console)\n(?P<text>.*?)^```", re.M | re.S
)
LONG = {"reproduce", "study", "bench"}
OTHERS = ("pip ", "make ", "docker ", "python ")  # commands that are not ours
RUNNER = CliRunner()


def blocks(name, kind):
    text = PAGES[name].read_text(encoding="utf-8")
    return [m for m in BLOCK.finditer(text) if m["kind"] == kind and m["why"] is None]


def typed(block):
    """Commands of a block, each with the lines that should come out: `$ command`, or all lines where none has a $."""
    lines = block["text"].splitlines()
    if not any(line.startswith("$ ") for line in lines):
        return [(line.partition(" #")[0].strip(), []) for line in lines if line.strip()]
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:].strip(), []))
        elif line.strip():
            found[-1][1].append(line)
    return found


def commands(name):
    return [pair for block in blocks(name, "console") for pair in typed(block) if not pair[0].startswith(OTHERS)]


def pages(kind):
    return [name for name in PAGES if blocks(name, kind)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "load.csv").write_bytes(demand())
    return tmp_path


@pytest.mark.parametrize("name", [name for name in pages("python") if name != "README.md"])  # pytest itself runs that
def test_examples(name, folder):
    if set(installed(("water", "sea"))) != {"water", "sea"}:
        pytest.skip("the examples play real data: pip install 'thalweg[data]'")
    text = PAGES[name].read_text(encoding="utf-8")
    names, source = {"__name__": "__main__"}, folder / f"{name}.py"  # Numba looks for the source of what it compiles
    source.write_text(text, encoding="utf-8")
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for block in blocks(name, "python"):
        line = text[: block.start("text")].count("\n")
        if ">>> " in block["text"]:
            example = parser.get_doctest(block["text"], names, name, name, line)
            runner.run(example, clear_globs=False)
            names = example.globs
        else:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile("\n" * line + block["text"], str(source), "exec"), names)
    assert runner.failures == 0


@pytest.mark.parametrize("name", [name for name in pages("console") if commands(name)])
def test_commands(name, folder):
    for command, said in commands(name):
        if command.split()[1] in LONG:
            continue
        if re.search(r"[|>(]", command):
            came = _shell(command, folder)
        else:
            word, *arguments = shlex.split(command)
            assert word == "thalweg", command
            result = RUNNER.invoke(app, arguments)
            came = result.output
            assert result.exit_code == 0, f"{command}\n{came}"
        lines = [line.split() for line in came.splitlines()]
        for line in said:
            assert any(alike(line.split(), one) for one in lines), f"{command}\nsays: {line}\n{came}"


def alike(said, came):
    """Words are the same, numbers up to 2 %; `...` stands for any word, alone for any line."""
    if said == ["..."]:
        return True
    return len(said) == len(came) and all(a in ("...", b) or _close(a, b) for a, b in zip(said, came, strict=True))


def _close(a, b):
    try:
        return math.isclose(float(a.strip("(),")), float(b.strip("(),")), rel_tol=0.02)
    except ValueError:
        return False


def _shell(command, folder):
    """What a shell prints, with `thalweg` on its path."""
    word = folder / "bin" / "thalweg"
    word.parent.mkdir(exist_ok=True)
    word.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m thalweg "$@"\n')
    word.chmod(0o755)
    path = {"PATH": f"{word.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(["bash", "-ec", command], env=os.environ | path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", list(PAGES))
def test_options_are_known(name):
    """Of every command, those in sentences too."""
    spans = re.findall(
        r"`thalweg ([a-z]+)((?:[^`\n]|\n(?!\n))*)`", BLOCK.sub("", PAGES[name].read_text(encoding="utf-8"))
    )
    spans += [(command.split()[1], command) for command, _ in commands(name) if command.startswith("thalweg ")]
    for command, rest in spans:
        help_ = RUNNER.invoke(app, [command, "--help"])
        assert help_.exit_code == 0, f"{name}: thalweg {command}"
        for option in re.findall(r"(?<=\s)--[a-z][a-z-]*", rest):
            assert option in help_.output or option == "--help", f"{name}: thalweg {command} {option}"


def test_lines_are_compared():
    assert alike(["loss", "1.00", "..."], ["loss", "1.01", "x"])
    assert not alike(["loss", "1.00"], ["loss", "1.03"])
    assert not alike(["loss", "1.00"], ["less", "1.00"])


def test_little_is_left_out():
    left = [(name, m["why"]) for name, path in PAGES.items() for m in BLOCK.finditer(path.read_text()) if m["why"]]
    assert len(left) <= 4, left


def test_choosing_is_measured():
    assert ">>> " in PAGES["how-to-choose.md"].read_text(encoding="utf-8")
