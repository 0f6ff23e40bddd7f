"""From a flown path to an English instruction."""
