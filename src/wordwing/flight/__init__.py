"""One drone at a time: the vehicle interface and the loop that flies a policy on it."""
