"""Datasets: one schema, the corpora that are generated, importers, demonstrations."""
