"""The parts of scripts/fetch_model: the hub, the registry copies, and what both need."""
