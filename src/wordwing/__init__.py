"""wordwing flies a quadcopter by plain English.

The method is the two-stage PVN2 policy trained by SuReAL (Blukis et al., CoRL 2019); `docs/paper.md` maps
the paper to this code.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("wordwing")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"
