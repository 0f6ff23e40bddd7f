"""Acceptance flights on an autopilot's own simulation, judged by the ground truth."""
