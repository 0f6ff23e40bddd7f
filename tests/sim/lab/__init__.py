"""A package, because its `test_camera.py` has a namesake."""
