"""Datasets: one schema, generated corpora, importers, exporters, and demonstrations (executions of ORACLE)."""
