"""Motion capture: where its poses come from, and how they reach the autopilot."""
