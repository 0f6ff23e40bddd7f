"""What moves and is seen: scenes, dynamics, cameras, the batched simulator, the lab and the Gymnasium environments."""
