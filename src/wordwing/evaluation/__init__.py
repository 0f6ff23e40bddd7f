"""How good it is and how it looks: metrics, rollouts, tables, plots, animations."""
