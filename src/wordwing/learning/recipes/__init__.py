"""What a run is: its configuration, recipes that work, the limits of settings, and the card of its policy."""
