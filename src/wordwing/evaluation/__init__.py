"""Splits become executions, executions become lines and metrics, and lines become reports."""
