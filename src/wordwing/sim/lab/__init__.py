"""The `lab` domain: the honest stand-in for the paper's physical cage, flown one drone at a time."""
