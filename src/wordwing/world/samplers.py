"""Random layouts: LANI's field, the paper's REAL cage, and furnished rooms.

The authors place landmarks in units of a thousandth of the arena, u = 4.7 mm; here they are metres,
rounded to millimetres so that layout files read well.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wordwing.frames import ARENA_HALF, ARENA_SIZE, CONFIG_UNITS
from wordwing.world.catalogue import landmarks
from wordwing.world.layout import Layout, Placement
from wordwing.world.rooms import sample_room

Corpus = Literal["field", "cage", "house"]

UNIT = ARENA_SIZE / CONFIG_UNITS
"""The authors' unit of length, metres."""
