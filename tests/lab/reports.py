"""What the tests of all studies ask of a report."""

import csv
import json
import re


def check_report(page, study, results, *pictures):
    """The folder of a small run is whole, and its page stands alone; returns its lines, its text and its tables."""
    folder, text, data = page.parent, page.read_text(encoding="utf-8"), study.read(results)
    drawn = {f"{study.name}-{name}.{kind}" for name in pictures for kind in ("png", "pdf")}
    assert {path.name for path in folder.iterdir()} == drawn | {"index.html", "runs.csv", "about.json", "runs"}
    assert all((folder / name).stat().st_size > 5_000 for name in drawn)
    assert text.count("<img ") == text.count("data:image/png;base64,") == len(pictures)
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    assert "A trial." in text
    facts = json.loads((folder / "about.json").read_text())
    assert (facts["command"], facts["small"]) == (f"thalweg study {study.name} --small", True)
    assert facts["runs"] == len(results)
    tables = study.tables(data)
    for table in tables.values():
        assert {len(row) for row in table.body} <= {len(table.heads)}
    with open(folder / "runs.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(study.lines(data)) > 0
    return lines, text, tables
