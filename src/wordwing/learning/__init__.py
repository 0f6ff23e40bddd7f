"""How the policy learns."""
