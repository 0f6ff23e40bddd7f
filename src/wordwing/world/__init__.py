"""What exists: the landmark catalogue, its MJCF bodies, layouts, fences and path sampling."""
