"""Evaluations as tables, charts, a page and films: all computed again from the lines of episodes.jsonl."""
