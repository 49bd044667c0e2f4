"""Networks of our own, one folder a family, with their weights."""
