"""Ranges of settings, as annotations of the fields that they belong to.

A plain `int` is a `Count` and a plain `float` is `NonNegative`; see `presets.changed`, which checks them.
"""

from typing import Annotated

from pydantic import Field

MOST = 10**15
"""No number is larger: it fits into whatever it is put into."""

Count = Annotated[int, Field(ge=1, le=MOST, description="a whole number of at least 1 (and at most 10^15)")]
CountOrZero = Annotated[int, Field(ge=0, le=MOST, description="a whole number of at least 0 (and at most 10^15)")]
BatchSize = Annotated[int, Field(ge=1, le=10_000)]
"""Memory grows with it: more is a slip of the finger."""
Images = Annotated[int, Field(ge=1, le=1000)]

NonNegative = Annotated[float, Field(ge=0, le=MOST, description="a number of at least 0 (and at most 10^15)")]
Positive = Annotated[float, Field(gt=0, le=MOST, description="a number above 0 (and at most 10^15)")]
Share = Annotated[float, Field(ge=0, le=1, description="a number from 0 to 1")]
Rate = Annotated[float, Field(gt=0, le=1, description="a number above 0 and at most 1")]
"""Of learning."""
