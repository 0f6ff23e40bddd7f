"""Words: tokens, what they name, how instructions are written and what they mean."""
