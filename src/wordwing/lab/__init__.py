"""The `lab` domain: a stand-in for the paper's physical cage, one drone at a time."""
