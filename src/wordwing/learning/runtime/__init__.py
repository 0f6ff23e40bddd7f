"""What runs the algorithms: processes, messages, checkpoints, logs, runs and recipes. It knows nothing of losses."""
