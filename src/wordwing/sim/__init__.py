"""The `sim` domain: a batched simulator with a Warp ray-casting camera and 6-DOF dynamics."""
