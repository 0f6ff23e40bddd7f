"""The networks of the policy (paper: Model; appendix Model Details)."""
