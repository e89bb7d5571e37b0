"""The page in a real browser: every picture is there and decoded, nothing is fetched, it fits a narrow window."""

import base64
import html.parser
import json
import re
import shutil
import subprocess

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--proxy-server=127.0.0.1:9"]  # fmt: skip
# The last one leads nowhere: what the browser wants for itself stays inside too.
PICTURES = 4
# Asks the page about itself, once it has loaded, and leaves the answer in its title.
PROBE = """<script>addEventListener("load", () => {
  const images = [...document.images];
  document.title = "ANSWER" + JSON.stringify({
    sizes: images.map(image => image.complete ? image.naturalWidth : 0),
    alts: images.map(image => image.alt),
    overflow: document.documentElement.scrollWidth - innerWidth,
    clipped: images.filter(image => image.getBoundingClientRect().right > innerWidth).length,
    tables: document.querySelectorAll("table").length,
  });
});</script>"""

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium or google-chrome on the path")


def browse(profile, *arguments):
    """Run the browser with a new, empty profile; what it prints."""
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def ask(page, tmp_path, width):
    """The probe's answer from a copy of the page, without the policy that forbids scripts."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    copied = tmp_path / "probe.html"
    copied.write_text(text.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    shown = browse(tmp_path / f"profile-{width}", f"--window-size={width},1000", "--dump-dom", copied.as_uri())
    title = re.search(r"<title>ANSWER(.*?)</title>", shown, re.S)
    assert title, shown[:500]
    return json.loads(html.unescape(title[1]))


@needs_browser
@pytest.mark.parametrize("width", [1200, 480])
def test_every_picture_is_decoded_and_the_page_fits(paper, tmp_path, width):
    answer = ask(paper, tmp_path, width)
    assert len(answer["sizes"]) == PICTURES
    assert min(answer["sizes"]) > 500
    assert all(answer["alts"])
    assert answer["overflow"] <= 0
    assert answer["clipped"] == 0
    assert answer["tables"] == 6


@needs_browser
def test_the_probe_notices_a_broken_picture(paper, tmp_path):
    broken = tmp_path / "index.html"
    broken.write_text(
        re.sub(r"base64,[^\"]{200}", "base64,", paper.read_text(encoding="utf-8"), count=1), encoding="utf-8"
    )
    assert min(ask(broken, tmp_path, 1200)["sizes"]) == 0


def fetched(path, tmp_path):
    """What a page asked for, by the browser's own log of the network; what the browser wants for itself is left out."""
    log = tmp_path / "net.json"
    browse(tmp_path / "profile", f"--log-net-log={log}", "--dump-dom", path.as_uri())
    asked = [event.get("params", {}) for event in json.loads(log.read_text(encoding="utf-8"))["events"]]
    return {params["url"] for params in asked if "url" in params and params.get("initiator") == "null"}


@needs_browser
def test_nothing_is_fetched(paper, tmp_path):
    assert fetched(paper, tmp_path) == set()


@needs_browser
def test_the_log_shows_what_is_fetched(tmp_path):
    careless = tmp_path / "careless.html"
    style = '<link rel="stylesheet" href="https://example.invalid/y.css">'
    careless.write_text(f'{style}<img src="http://example.invalid/x.png">', encoding="utf-8")
    assert fetched(careless, tmp_path) == {"http://example.invalid/x.png", "https://example.invalid/y.css"}


@needs_browser
def test_the_page_can_be_printed(paper, tmp_path):
    browse(tmp_path / "profile", f"--print-to-pdf={tmp_path / 'page.pdf'}", paper.as_uri())
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


# --------------------------------------------------------------------------------------------------- without a browser


class Reader(html.parser.HTMLParser):
    """Collects what a page refers to and the tags that it leaves open."""

    def __init__(self):
        super().__init__()
        self.references, self.tags, self.open = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.references += [value for key, value in attributes if key in ("src", "href", "srcset", "action", "data")]
        if tag not in ("meta", "img", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def read(paper):
    reader = Reader()
    reader.feed(paper.read_text(encoding="utf-8"))
    reader.close()
    return reader


def test_the_page_refers_to_nothing_outside_itself(paper, read):
    assert len(read.references) == PICTURES
    assert all(value.startswith("data:image/png;base64,") for value in read.references)
    text = paper.read_text(encoding="utf-8")
    assert not re.findall(r"url\(|@import|https?://", text)
    assert "script" not in read.tags
    assert "default-src 'none'" in text


def test_the_page_is_whole(read):
    assert read.open == []
    assert read.tags.count("img") == PICTURES
    assert read.tags.index("img") < read.tags.index("table")  # the figure comes first


def test_pictures_are_those_beside_the_page(paper, read):
    beside = {path.read_bytes() for path in paper.parent.glob("*.png")}
    assert {base64.b64decode(value.partition(",")[2]) for value in read.references} == beside


def test_a_trial_says_that_it_is_one(paper):
    text = paper.read_text(encoding="utf-8")
    assert "The numbers mean nothing" in text
    assert "Only 120 rounds" in text
