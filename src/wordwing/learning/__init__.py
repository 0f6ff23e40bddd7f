"""SuReAL and behaviour cloning: Algorithm 1 (supervised), Algorithm 2 (PPO), and the processes they run in."""
