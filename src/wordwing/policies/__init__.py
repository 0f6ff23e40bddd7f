"""Policies that learn nothing: STOP, AVERAGE and ORACLE (paper: Systems)."""

from wordwing.policies.average import Average
from wordwing.policies.oracle import Oracle, OracleConfig
from wordwing.policies.stop import Stop

__all__ = ["Average", "Oracle", "OracleConfig", "Stop"]
