"""What the documentation site adds to MkDocs. `make docs` builds it; here is what that relies on."""

import importlib.util
import pathlib

import pytest

pytest.importorskip("latex2mathml", reason="pip install 'thalweg[docs]'")
markdown = pytest.importorskip("markdown")
pytest.importorskip("mkdocs")

ROOT = pathlib.Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "site" / "hooks.py")
hooks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hooks)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ('<script src="https://cdn.example/x.js">', "https://cdn.example/x.js"),
        ("<script defer src=//cdn.example/x.js>", "//cdn.example/x.js"),
        ('<link rel="stylesheet" href="https://fonts.example/f.css">', "https://fonts.example/f.css"),
        ('<img alt="a" src="http://pictures.example/p.png">', "http://pictures.example/p.png"),
        ("a { background: url(https://pictures.example/p.png) }", "https://pictures.example/p.png"),
        ('fetch("https://unpkg.com/mermaid@11")', "https://unpkg.com/mermaid@11"),
    ],
)
def test_what_would_be_fetched_is_found(text, host):
    assert hooks.fetched(text) == [host]


def test_links_that_a_reader_follows_are_no_fetches():
    assert hooks.fetched('<a href="https://example.org/">there</a> <img src="img/here.png">') == []


def test_formulas_become_mathml():
    text = "A sum :math:`\\sum_t f_t(x)` of\n\n.. math:: \\frac{a}{b}\n    + c\n\nand <a, x>, `<b, y>`."
    page = markdown.markdown(text, extensions=[hooks.Formulas()])
    assert page.count("<math ") == 2
    assert "<mfrac>" in page
    assert 'display="block"' in page
    assert ":math:" not in page
    assert "⟨a, x⟩" in page
    assert "&lt;b, y&gt;" in page


def test_every_formula_of_the_package_is_understood():
    """What latex2mathml does not know stays in the page with its backslash."""
    for path in (ROOT / "src").rglob("*.py"):
        for line in path.read_text(encoding="utf-8").split(":math:`")[1:]:
            drawn = hooks.mathml(line.partition("`")[0], "inline").partition(">")[2]
            assert "\\" not in drawn, f"{path.name}: {line[:60]}"


def test_every_public_name_has_its_place():
    import thalweg

    page = hooks.reference("thalweg", ROOT / "src/thalweg/__init__.py")
    for name in thalweg.__all__:
        assert name.startswith("__") or f".{name}\n" in page, name


def test_links_lead_to_pages():
    text = "[a](docs/pca.md#time) [b](CONTRIBUTING.md) [c](https://example.org) [d](examples/service.py)"
    there = "[a](../pca.md#time) [b](../contributing.md) [c](https://example.org) [d](../files/examples/service.py.md)"
    assert hooks.moved(text, "", "api/x.md") == there
