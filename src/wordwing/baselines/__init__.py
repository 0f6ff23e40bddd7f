"""Policies that learn nothing: STOP, AVERAGE and ORACLE (paper: Systems)."""

from wordwing.baselines.average import Average
from wordwing.baselines.oracle import Oracle, OracleConfig
from wordwing.baselines.stop import Stop

__all__ = ["Average", "Oracle", "OracleConfig", "Stop"]
