"""From an English text to its meaning."""
