"""Pages in a real browser."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

MISSING = ""
try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import Browser, Page, sync_playwright
except ImportError:
    MISSING = "no Playwright: pip install playwright axe-playwright-python"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


@contextmanager
def open_browser() -> "Iterator[Browser]":
    """Headless Chromium; without one the test is left out, or fails where nothing may be."""
    if MISSING:
        leave_out(MISSING)
    with sync_playwright() as playwright:
        chromium = CHROMIUM or playwright.chromium.executable_path
        if not Path(chromium).exists():
            leave_out("no Chromium: apt install chromium, or playwright install chromium")
        arguments = ["--no-sandbox", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield browser
        browser.close()


def leave_out(why: str) -> None:
    if os.environ.get("WORDWING_NO_SKIPS"):
        pytest.fail(why)
    pytest.skip(why)


class Visitor:
    """Opens pages, and writes down what goes wrong in them."""

    def __init__(self, browser: "Browser", url: str, expected: tuple[str, ...] = ()) -> None:
        """Come to a server; what the console says with one of the expected texts in it is no mistake."""
        self.browser, self.url, self.expected = browser, url, expected
        self.contexts: list[Any] = []
        self.mistakes: list[str] = []

    def __call__(self, address: str = "/", prepare: Callable[[Any], object] = bool, **options: Any) -> "Page":
        options = {"viewport": DESKTOP, "reduced_motion": "reduce", **options}
        self.contexts.append(self.browser.new_context(**options))
        page = self.contexts[-1].new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: self.mistakes.append(str(error)))
        page.on("console", self.listen)
        prepare(page)
        page.goto(self.url + address)
        return page

    def listen(self, said: Any) -> None:
        if said.type == "error" and not any(text in said.text for text in self.expected):
            self.mistakes.append(said.text)

    def leave(self) -> None:
        for context in self.contexts:
            context.close()


def assert_accessible(page: "Page") -> None:
    """Axe has nothing to complain about."""
    found = Axe().run(page, options=RULES)
    assert found.violations_count == 0, found.generate_report()
