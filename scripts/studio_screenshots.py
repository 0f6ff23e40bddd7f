"""Screenshots of the studio and of the pages of a study and a collection for docs/: desktop and phone, light and dark.

Usage: python scripts/studio_screenshots.py [FOLDER]     (docs by default; needs Playwright and Chromium)
"""

import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from wordwing.cli import main as wordwing
from wordwing.collect.server import make_server as collection_server
from wordwing.collect.store import Collection
from wordwing.studio.resources import load_policies
from wordwing.studio.server import StudioConfig, make_server as studio_server
from wordwing.study.questions import Answers
from wordwing.study.server import make_server as study_server
from wordwing.study.store import Study
from wordwing.web.pages import PageConfig

PORT = 8137
URL = f"http://127.0.0.1:{PORT}/"
SENTENCE = "go to the boat, then sneak past the gorilla and stop behind the big pumpkin"
SIZES = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}
RATED = 6
"""Flights that the rater in the screenshots has rated already."""

WRITTEN = (
    "fly towards the gravestone with the red flowers and stop a bit more than halfway",
    "turn right before the stone and go on until the cone is on your right, a good metre away",
    "straight on to the gap between the mushroom and the stump",
    "now to the mushroom, and stop in front of it",
)
WRITTEN_NEXT = ("go between the gorilla and the pumpkin and stop when the pumpkin is on your left",)
TYPED = "fly around it, still on your left, until the white rocks are straight ahead"
"""What a writer has sent, has kept of the next path, and types."""
DRAWN = ((0.71, 0.54), (0.67, 0.56), (0.62, 0.58))
"""Where the follower taps, in widths and heights of the map."""


@contextmanager
def serving(server: uvicorn.Server) -> Iterator[None]:
    """Run a server in a thread."""
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.1)
    yield
    server.should_exit = True
    thread.join()


def pages(browser: Browser, scale: float) -> Iterator[tuple[str, Page]]:
    """Pages of each size and theme, with their names; `scale` is pixels per CSS pixel."""
    for kind, size in SIZES.items():
        for theme in ("light", "dark"):
            page = browser.new_page(viewport=size, color_scheme=theme, device_scale_factor=scale)  # type: ignore[arg-type]
            yield f"{kind}-{theme}", page
            page.close()


def photograph(page: Page, image: Path, quality: int) -> None:
    """Save the visible part of a page."""
    with tempfile.TemporaryDirectory() as folder:
        page.screenshot(path=f"{folder}/page.png")
        Image.open(f"{folder}/page.png").convert("RGB").save(image, quality=quality, method=6)


def studio(browser: Browser, out: Path) -> None:
    """Fly, and take screenshots when the flight has ended and the verdict is shown."""
    with (
        tempfile.TemporaryDirectory() as keep,
        serving(studio_server(StudioConfig(load_policies(("pvn2-sureal",)), Path(keep), port=PORT))),
    ):
        for name, page in pages(browser, 1.5):
            page.goto(URL)
            page.wait_for_selector("body[data-phase=idle] #things-list li:nth-child(2)", state="attached")
            page.locator("textarea").first.fill(SENTENCE)
            page.select_option("#speed", "8")
            page.locator("#seed").fill("12")
            page.locator("#seed").blur()
            time.sleep(3)  # for the layout, and for the words that it does not know
            page.click("#fly")
            page.wait_for_selector("body[data-phase=ended]", timeout=120_000)
            page.focus("#time")
            for _step in range(4):
                page.keyboard.press("ArrowLeft")
            page.evaluate("scrollTo(0, 0)")
            time.sleep(0.5)
            photograph(page, out / f"studio-{name}.webp", 82)


def study(browser: Browser, out: Path) -> None:
    """Create a study, and take screenshots of one of its flights."""
    with tempfile.TemporaryDirectory() as folder:
        flights = f"{folder}/flights"
        wordwing(["evaluate", "oracle", "average", "--segments", "2", "--limit", "8", "--out", flights])
        wordwing(["study", "create", "--episodes", flights, "--practice", "0", "--out", f"{folder}/study.db"])
        made = Study(f"{folder}/study.db")
        rater = made.new_participant()
        for item, _rated in made.order(rater)[:RATED]:
            made.rate(rater, item, Answers(3, 3, 3))
        with serving(study_server(PageConfig(made, port=PORT))):
            for name, page in pages(browser, 1.25):
                page.emulate_media(reduced_motion="reduce")
                page.goto(f"{URL}#rater={rater}")
                page.check("[name=path][value='4']")
                page.focus("#moment")
                for _step in range(7):
                    page.keyboard.press("PageUp")
                page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
                time.sleep(1)
                photograph(page, out / f"study-{name}.webp", 60)


def collection(browser: Browser, out: Path) -> None:
    """Create a collection, and take screenshots of a writer, in the light, and of a follower, in the dark."""
    with tempfile.TemporaryDirectory() as folder:
        options = ("--by", "human", "--paths", "2", "--segments", "4", "4", "--practice", "0", "--seed", "3")
        wordwing(["collect", "create", *options, "--out", f"{folder}/collection.db"])
        made = Collection(f"{folder}/collection.db")
        writer, follower = made.new_participant(), made.new_participant()
        for sentences in (WRITTEN, WRITTEN_NEXT):
            work = made.work(writer)
            assert work is not None
            for place, sentence in enumerate(sentences):
                made.keep(writer, work.id, place, sentence)
            if len(sentences) == len(work.parts):
                made.send(writer, work.id)
        with serving(collection_server(PageConfig(made, port=PORT))):
            for name, page in pages(browser, 1.25):
                page.emulate_media(reduced_motion="reduce")
                page.goto(f"{URL}#participant={writer if name.endswith('light') else follower}")
                if name.endswith("light"):
                    page.fill("#sentence", TYPED)
                else:
                    page.wait_for_selector("body[data-screen=follow]")
                    box = page.locator("#sketch").bounding_box()
                    assert box is not None
                    for right, down in DRAWN:
                        page.mouse.click(box["x"] + right * box["width"], box["y"] + down * box["height"])
                page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
                time.sleep(1)
                photograph(page, out / f"collect-{name}.webp", 60)


def main() -> None:
    """Take all screenshots."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        studio(browser, out)
        study(browser, out)
        collection(browser, out)
        browser.close()


if __name__ == "__main__":
    main()
