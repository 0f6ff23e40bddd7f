"""A laboratory's people write sentences for paths, and follow each other's: from paths to a dataset."""
