"""Models that do not look: floors for the others."""
