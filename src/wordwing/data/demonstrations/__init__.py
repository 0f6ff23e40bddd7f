"""Demonstrations: ORACLE along the gold path of every instruction (paper: Demonstration Data)."""
