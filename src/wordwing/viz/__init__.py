"""Drawing what others made: maps, views from above, videos, sheets."""
