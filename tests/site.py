"""The built site in a real browser: ``make check-site``, or ``python -m tests.site <folder>``.

Opens every page in chromium at the width of a phone and of a desk, light and dark. It fails on a
link that leads nowhere within the site, on an error or warning in a page's console, on anything
that a page asks the network for, on a page that scrolls sideways or text beyond the screen, on an
image that is not there, and on a block of code that is cut. A second argument names a folder for
pictures of all pages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from .browser import Browser, open_browser

#: widths and heights in pixels
SCREENS = {"phone": (390, 844), "desk": (1280, 900)}
THEMES = ("light", "dark")
#: what is wrong with the page that is open, by what can be seen of it
LOOK = """
const width = document.documentElement.clientWidth, wrong = [];
const scrolls = e => ['auto', 'scroll'].includes(getComputedStyle(e).overflowX);
if (document.documentElement.scrollWidth > width + 1)
  wrong.push('scrolls sideways: ' + document.documentElement.scrollWidth + ' px');
const text = 'article p, article dt, article dd, article li, article h1, article h2, article img';
for (const e of document.querySelectorAll(text)) {
  const box = e.getBoundingClientRect();
  if (box.width === 0 || box.right <= width + 1) continue;
  const within = e.closest('pre, table, .math-block, .pst-scrollable-table-container');
  if (within && scrolls(within)) continue;
  wrong.push('goes beyond the screen: ' + e.tagName + ' ' + e.textContent.slice(0, 40));
  break;
}
for (const image of document.images)
  if (image.complete && image.naturalWidth === 0 && image.loading !== 'lazy'
      && getComputedStyle(image).display !== 'none')
    wrong.push('image is not there: ' + image.getAttribute('src'));
for (const code of document.querySelectorAll('pre, .math-block'))
  if (code.scrollWidth > code.clientWidth + 1 && code.clientWidth > 0
      && !scrolls(code) && !scrolls(code.parentElement))
    wrong.push('code is cut: ' + code.textContent.slice(0, 40));
return wrong;
"""


class _Links(HTMLParser):
    """Targets and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors.update(filter(None, (given.get("id"), given.get("name"))))
        for name in ("href", "src"):
            if given.get(name):
                self.targets.add(str(given[name]))


@dataclass
class Report:
    """What was looked at, and what is wrong."""

    pages: int = 0
    views: int = 0
    links: int = 0
    wrong: list[str] = field(default_factory=list)


def pages_of(site: Path) -> list[Path]:
    """The pages that a reader can come to."""
    return sorted(page for page in site.rglob("*.html") if "_static" not in page.parts)


def _parsed(page: Path) -> _Links:
    links = _Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links


def broken_links(site: Path) -> Iterator[tuple[Path, str | None]]:
    """All links within the site with the reason why one is broken, None for those that are not."""
    parsed = {page.resolve(): _parsed(page) for page in pages_of(site)}
    for page, links in parsed.items():
        for target in sorted(links.targets):
            if urlsplit(target).scheme or target.startswith("//"):
                continue
            path, anchor = urldefrag(target)
            file = page if not path else (page.parent / unquote(path.split("?")[0])).resolve()
            if file.is_dir():
                file /= "index.html"
            reason = None
            if not file.exists():
                reason = f"{target}: there is no such file"
            elif anchor and file in parsed and unquote(anchor) not in parsed[file].anchors:
                reason = f"{target}: the page has no such place"
            yield page, reason


def look(browser: Browser, page: Path) -> Iterator[tuple[str, list[str]]]:
    """What is wrong with a page at the present width, by the theme that is shown meanwhile."""
    browser.open(page)
    for theme in THEMES:
        browser.run(
            "for (const name of ['theme', 'mode']) document.documentElement.dataset[name] ="
            " arguments[0];",
            theme,
        )
        wrong = list(browser.run(LOOK))
        wrong += [f"console: {said}" for said in browser.complaints()]
        wrong += [
            f"asks the network for {address}"
            for address in browser.requests()
            if address.startswith(("http:", "https:"))
        ]
        yield theme, wrong


def check(site: Path, shots: Path | None = None) -> Report:
    """Look at a site; pictures of all pages go to ``shots``."""
    report = Report()
    for page, reason in broken_links(site):
        report.links += 1
        if reason:
            report.wrong.append(f"{page.relative_to(site.resolve())}: {reason}")
    pages = pages_of(site)
    report.pages = len(pages)
    sources = [page for page in pages if "_modules" in page.relative_to(site).parts]
    pages = [page for page in pages if page not in sources[1:]]  # one of them looks like all
    with open_browser() as browser:
        for screen, size in SCREENS.items():
            browser.resize(*size)
            for page in pages:
                name = page.relative_to(site)
                for theme, wrong in look(browser, page):
                    report.views += 1
                    report.wrong += [f"{name}, {screen}, {theme}: {reason}" for reason in wrong]
                    if shots is not None:
                        flat = str(name.with_suffix("")).replace("/", "__")
                        browser.screenshot(shots / f"{flat}-{screen}-{theme}.png")
    return report


def main(arguments: list[str]) -> int:
    site = Path(arguments[0])
    shots = Path(arguments[1]) if len(arguments) > 1 else None
    if shots is not None:
        shots.mkdir(parents=True, exist_ok=True)
    report = check(site, shots)
    for line in report.wrong:
        sys.stderr.write(f"{line}\n")
    sys.stdout.write(
        f"{report.pages} pages, {report.views} views, {report.links} links: "
        f"{len(report.wrong)} faults\n"
    )
    return 1 if report.wrong or not report.pages else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
