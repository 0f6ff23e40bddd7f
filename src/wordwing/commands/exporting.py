"""`wordwing data export`: datasets in the formats of other people's tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from wordwing.commands.progress import track


def drif(dataset: Annotated[Path, tyro.conf.Positional], /, out: Path) -> None:
    """Write a dataset as a workspace of the authors' CoRL 2019 format.

    Args:
        dataset: A dataset's folder; its layouts must be arenas, not rooms larger than one.
        out: Folder for the workspace; new, empty or an earlier export.
    """
    from wordwing.data.dataset import Dataset
    from wordwing.data.exporters import export_drif

    for split, count in export_drif(Dataset(dataset), out, track).items():
        print(f"{split:12} {count} paragraphs")
    print(out)
