"""Everything that flies: the baselines STOP, AVERAGE and ORACLE (paper: Systems), and learned policies."""
