"""Draw the layers of the package as its import contract has them: docs/architecture.svg.

Usage: python scripts/architecture.py [OUT]
"""

import ast
import re
import sys
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "architecture.svg"

WIDTH, ROW, GAP, LEFT = 1120, 30, 6, 190
"""Of the picture, a layer and the space between two, and of the names' column, pixels."""


def layers() -> list[list[str]]:
    """Modules of each layer, the highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    found = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip(" ()").removeprefix("wordwing.") for name in re.split(r"[|:]", layer)] for layer in found]


def purpose(module: str) -> str:
    """The first sentence of a module's docstring."""
    file = ROOT / "src" / "wordwing" / module
    source = (file / "__init__.py" if file.is_dir() else file.with_suffix(".py")).read_text("utf-8")
    text = ast.get_docstring(ast.parse(source)) or ""
    return text.split("\n\n")[0].replace("\n", " ").replace("`", "").rstrip(".")


def picture() -> str:
    """The layers as SVG: a row for each module, a box around those of one layer."""
    rows, boxes, y = [], [], GAP
    for layer in layers():
        height = ROW * len(layer)
        boxes.append(f'<rect x="{GAP}" y="{y}" width="{WIDTH - 2 * GAP}" height="{height}" rx="6"/>')
        for number, module in enumerate(layer):
            base = y + ROW * number + 20
            rows.append(f'<text class="name" x="{GAP + 14}" y="{base}">{escape(module)}</text>')
            rows.append(f'<text x="{LEFT}" y="{base}">{escape(purpose(module))}</text>')
        y += height + GAP
    style = (
        "text{font:14px sans-serif;fill:#222}.name{font-weight:bold}rect{fill:#eef3f8;stroke:#5b7a99}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}rect{fill:#1d2833;stroke:#7d9cbb}}"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}">',
            f"<style>{style}</style>",
            *boxes,
            *rows,
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else OUT).write_text(picture(), "utf-8")
