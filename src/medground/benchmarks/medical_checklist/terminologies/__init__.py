"""Terminologies: one reader a file, one interface."""
