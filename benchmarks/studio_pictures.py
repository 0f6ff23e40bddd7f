"""Pictures of the studio for docs/studio.md: desktop and phone, light and dark.

Usage: python benchmarks/studio_pictures.py [FOLDER]     (docs by default; needs Playwright and Chromium)
"""

import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from wordwing.studio.crew import load_crew
from wordwing.studio.server import Settings, make_server

PORT = 8137
SENTENCE = "go to the boat, then sneak past the gorilla and stop behind the big pumpkin"
SIZES = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}


def take(browser: Browser, kind: str, theme: str, picture: Path) -> None:
    """Fly, and photograph the page in the middle of the replay."""
    page = browser.new_page(viewport=SIZES[kind], color_scheme=theme, device_scale_factor=1.5)  # type: ignore[arg-type]
    page.goto(f"http://127.0.0.1:{PORT}/")
    page.wait_for_selector("body[data-phase=idle] #things-list li:nth-child(2)", state="attached")
    page.locator("textarea").first.fill(SENTENCE)
    page.select_option("#speed", "8")
    page.get_by_role("button", name="New random layout").click()
    time.sleep(3)  # for the layout, and for the words that it does not know
    page.click("#fly")
    page.wait_for_selector("body[data-phase=ended]", timeout=120_000)
    page.focus("#time")
    for _step in range(9):
        page.keyboard.press("ArrowLeft")
    page.evaluate("scrollTo(0, 0)")
    time.sleep(0.5)
    with tempfile.TemporaryDirectory() as folder:
        page.screenshot(path=f"{folder}/page.png")
        Image.open(f"{folder}/page.png").convert("RGB").save(picture, quality=82, method=6)
    page.close()


def main() -> None:
    """Open a studio and take all pictures."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs"
    with tempfile.TemporaryDirectory() as keep, sync_playwright() as playwright:
        server = make_server(Settings(load_crew(("pvn2-sureal",)), Path(keep), port=PORT))
        threading.Thread(target=server.run, daemon=True).start()
        while not server.started:
            time.sleep(0.1)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for kind in SIZES:
            for theme in ("light", "dark"):
                take(browser, kind, theme, out / f"studio-{kind}-{theme}.webp")
        browser.close()
        server.should_exit = True


if __name__ == "__main__":
    main()
