"""A screenshot of a report for docs/: its beginning beside its gallery.

Usage: python scripts/report_screenshot.py IMAGE EVALUATION…     (needs Playwright and Chromium)
"""

import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from wordwing.cli import main as wordwing

WIDTH, HEIGHT, SCALE = 1180, 1960, 0.75
"""Size of each half in CSS pixels, and image pixels per CSS pixel."""


def main() -> None:
    """Write the report and take the screenshot."""
    image, *evaluations = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        wordwing(["report", *evaluations, "--videos", "3", "--out", folder])
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE)
        page.goto(f"file://{folder}/report.html")
        halves = []
        for name in ("content", "gallery"):
            page.evaluate(f"document.getElementById('{name}').scrollIntoView({{behavior: 'instant'}})")
            page.screenshot(path=f"{folder}/{name}.png")
            halves.append(Image.open(f"{folder}/{name}.png").convert("RGB"))
        browser.close()
    sheet = Image.new("RGB", (sum(half.width for half in halves), halves[0].height))
    for number, half in enumerate(halves):
        sheet.paste(half, (number * half.width, 0))
    sheet.save(Path(image), quality=70, method=6)


if __name__ == "__main__":
    main()
