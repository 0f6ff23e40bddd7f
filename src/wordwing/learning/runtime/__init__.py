"""What runs the algorithms: processes, messages, checkpoints, logs, run folders and recipes. It knows nothing of losses."""
