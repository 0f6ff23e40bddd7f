"""The acceptance list: what wordwing does with an autopilot's own simulation, judged by the true position."""
