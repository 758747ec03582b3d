"""How memory reaches each agent: what is installed where, and the hook that its sessions call."""
