"""The `lab` domain: an honest stand-in for the paper's physical cage, one drone at a time."""
