"""Evaluations as tables, charts, a page and videos, all computed again from the lines of episodes.jsonl."""
