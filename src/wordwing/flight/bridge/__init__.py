"""wordwing's world around the user's own autopilot simulation: motion capture, a camera, faults, acceptance flights."""
