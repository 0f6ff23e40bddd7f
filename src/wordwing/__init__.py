"""wordwing flies a quadcopter by plain English.

The method is the two-stage PVN2 policy trained by SuReAL (Blukis et al., CoRL 2019); `docs/paper.md` maps
the paper to this code.
"""

__version__: str


def __getattr__(name: str) -> str:
    """The version, looked up when it is asked for: Ctrl-C must be answered before so much is imported."""
    global __version__
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        __version__ = version("wordwing")
    except PackageNotFoundError:  # run from a source tree that was never installed
        __version__ = "0+unknown"
    return __version__
