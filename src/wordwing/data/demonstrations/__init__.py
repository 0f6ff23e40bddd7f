"""Demonstrations: ORACLE along the gold path of every instruction (paper: Demonstration Data).

`sim` flights hold poses and setpoints, their pictures are drawn again when needed; `lab` flights hold pictures too.
"""

from wordwing.data.demonstrations.records import Batch, Demonstrations, LabDemonstrations

__all__ = ["Batch", "Demonstrations", "LabDemonstrations"]
