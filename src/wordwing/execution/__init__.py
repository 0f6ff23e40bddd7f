"""Flying: the one loop (`Runner`), the one record (`Execution`, the paper's Ξ) and what is measured of it."""
