"""What the documentation site needs beside MkDocs.

Pages that are made: the API reference, changelog, contributing, security, and files of the repository that pages link
to. Formulas of docstrings become MathML, which browsers draw by themselves.
"""

import ast
import pathlib
import posixpath
import re
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).parents[2]
MADE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "README.md": "index.md",
}
MODULES = ("domains", "losses", "problems", "experts", "metas", "regret", "control", "pca", "estimators", "scaling",
           "testing", "files", "lab")  # fmt: skip
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
MATHML = "http://www.w3.org/1998/Math/MathML"
OVER = {
    f"{{{MATHML}}}{name}": f"{{{MATHML}}}{other}" for name, other in {"msub": "munder", "msubsup": "munderover"}.items()
}
LIMITS = {"∑", "max", "min", "sup", "arg min"}
ElementTree.register_namespace("", MATHML)
READ = (".html", ".css", ".js")
FETCH = re.compile(
    r"""(?:<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\s(?:src|data|srcset)="?"""
    r"""|<link\b(?![^>]*\brel="?(?:canonical|prev|next))[^>]*?\shref="?|url\(["']?|@import\s+["'])((?:https?:)?//[^"'\s)>]+)"""
    r"""|(https?://[\w.-]*(?:unpkg|jsdelivr|cdnjs|googleapis|gstatic|polyfill)[^"'\s)>]*)""",
    re.IGNORECASE,
)


def on_config(config):
    """Formulas in Markdown."""
    config.markdown_extensions.append(Formulas())


def on_files(files, config):
    """Add the pages that are made."""

    def add(path, text):
        files.append(File.generated(config, path, content=text))

    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        add(MADE[name], moved((ROOT / name).read_text(encoding="utf-8"), "", MADE[name]))
    add("api/thalweg.md", reference("thalweg", ROOT / "src/thalweg/__init__.py", leave={*MODULES, "cards", "theorems"}))
    for name in MODULES:
        path = ROOT / "src/thalweg" / name
        add(
            f"api/{name}.md",
            reference(f"thalweg.{name}", path / "__init__.py" if path.is_dir() else path.with_suffix(".py")),
        )
    for path in linked(config):
        text = (ROOT / path).read_text(encoding="utf-8")
        add(f"files/{path}.md", f"# {path}\n\n````{'python' if path.endswith('.py') else ''}\n{text}\n````\n")
    return files


def on_page_markdown(markdown, page, config, files):
    """Links that leave docs/ lead to the pages made of what they name."""
    if page.file.generated_by:
        return markdown
    return moved(markdown, "docs", page.file.src_uri)


def on_post_build(config):
    """The theme's script would fetch two helpers, for diagrams and old browsers: not here. Nor may anything else."""
    site = pathlib.Path(config.site_dir)
    for path in (site / "assets/javascripts").glob("bundle.*.js"):
        path.write_text(path.read_text(encoding="utf-8").replace("https://unpkg.com/", ""), encoding="utf-8")
    found = {path.name: fetched(path.read_text(encoding="utf-8")) for path in site.rglob("*.*") if path.suffix in READ}
    found = {name: hosts for name, hosts in found.items() if hosts}
    if found:
        raise PluginError(f"The site would fetch from other hosts: {found}")


def fetched(text):
    """What a page, a style or a script would fetch from another host. Links that a reader follows are none of it."""
    return sorted({match[1] or match[2] for match in FETCH.finditer(text)})


# ------------------------------------------------------------------------------------------------------------- links


def moved(text, folder, page):
    """Markdown that stood in `folder` of the repository, as the page `page` of the site."""

    def new(match):
        target = posixpath.normpath(posixpath.join(folder, match[1]))
        if target.startswith("docs/"):
            place = target.removeprefix("docs/")
        elif (ROOT / target).is_file():
            place = MADE.get(target, f"files/{target}.md")
        else:
            return match[0]
        return posixpath.relpath(place, posixpath.dirname(page) or ".") + (match[2] or "")

    return LINK.sub(new, text)


def linked(config):
    """Files outside docs/ that pages link to, without those that are pages themselves."""
    texts = [("docs", path) for path in sorted(pathlib.Path(config.docs_dir).glob("*.md"))]
    texts += [("", ROOT / name) for name in MADE]
    found = set()
    for folder, path in texts:
        for match in LINK.finditer(path.read_text(encoding="utf-8")):
            target = posixpath.normpath(posixpath.join(folder, match[1]))
            if not target.startswith("docs/") and target not in MADE and (ROOT / target).is_file():
                found.add(target)
    return sorted(found)


# --------------------------------------------------------------------------------------------------------------- API


def reference(module, path, leave=()):
    """The page of a module: its docstring, then every public name where it is defined."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines = [
        f"# {module}",
        "",
        f"::: {module}",
        "    options:",
        "      members: false",
        "      show_root_heading: false",
        "      show_root_toc_entry: false",
        "",
    ]
    for name, place in sorted(names(tree, module).items(), key=lambda pair: pair[0].lower()):
        if name not in leave and not name.startswith("__"):
            lines += [f"::: {place}", "    options:", "      show_root_full_path: false", ""]
    return "\n".join(lines)


def names(tree, module):
    """Public names of a module, and where each is defined: here, imported, or loaded when first used."""
    found, public = {}, None
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            found |= {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.If):  # TYPE_CHECKING
            for one in node.body:
                if isinstance(one, ast.ImportFrom):
                    found |= {alias.name: f"{one.module}.{alias.name}" for alias in one.names}
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            found[node.name] = f"{module}.{node.name}"
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if getattr(target, "id", None) == "__all__" and isinstance(node.value, ast.List):
                public = ast.literal_eval(node.value)
            elif getattr(target, "id", None) == "_PLACES":
                found = {key: f"{module}.{place}.{key}" for key, (place, _) in ast.literal_eval(node.value).items()}
                public = list(found)
            elif isinstance(target, ast.Name):
                found[target.id] = f"{module}.{target.id}"
    return {name: found[name] for name in public or [] if name in found}


# ---------------------------------------------------------------------------------------------------------- formulas


class Formulas(Extension):
    """:math:`x` in a line, and .. math:: on lines of its own."""

    def extendMarkdown(self, md):  # noqa: D102
        md.inlinePatterns.register(Inline(r":math:`([^`]+)`", md), "formula", 200)
        md.inlinePatterns.register(Brackets(r"<(\w[^<>]*, [^<>]*)>", md), "brackets", 185)  # after code, before HTML
        md.preprocessors.register(Display(md), "formulas", 26)


class Inline(InlineProcessor):
    """A formula in a line."""

    def handleMatch(self, m, data):  # noqa: D102
        return self.md.htmlStash.store(mathml(m[1], "inline")), m.start(0), m.end(0)


class Brackets(InlineProcessor):
    """An inner product <a, x>: no tag."""

    def handleMatch(self, m, data):  # noqa: D102
        return f"⟨{m[1]}⟩", m.start(0), m.end(0)


class Display(Preprocessor):
    """A formula on lines of its own: the rest of the first line, and all lines that are indented deeper."""

    def run(self, lines):  # noqa: D102
        out, rest = [], list(lines)
        while rest:
            line = rest.pop(0)
            start = re.match(r"( *)\.\. math::(.*)", line)
            if start is None:
                out.append(line)
                continue
            text = [start[2]]
            while rest and (not rest[0].strip() or rest[0].startswith(start[1] + " ")):
                text.append(rest.pop(0))
            out += ["", start[1] + self.md.htmlStash.store(mathml(" ".join(text), "block")), ""]
        return out


def mathml(latex, display):
    """A formula as browsers draw it; its LaTeX is its title. On lines of its own limits stand above and below."""
    latex = " ".join(latex.split())
    root = ElementTree.fromstring(convert(latex.replace(r"\arg\min", r"\text{arg min}"), display=display))
    root.set("title", latex)
    for part in root.iter() if display == "block" else ():
        if part.tag in OVER and (part[0].text or "").strip() in LIMITS:
            part.tag = OVER[part.tag]
    return ElementTree.tostring(root, encoding="unicode")
