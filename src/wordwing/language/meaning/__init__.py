"""What an instruction means, and how well a flown path carries it out."""
