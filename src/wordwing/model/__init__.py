"""The policy: what it sees, reads, maps, predicts and decides (paper: Model; appendix Model Details)."""
