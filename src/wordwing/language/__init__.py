"""Tokens, the parser, the instruction writer, and what instructions mean and how that is judged."""
