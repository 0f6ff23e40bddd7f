"""A real drone: the guardian that keeps it safe, MAVLink, motion capture, and the lab served as an autopilot."""
