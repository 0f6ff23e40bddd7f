"""MAVLink: links, messages, signing, and what ArduPilot and PX4 report."""
