"""Trains the small chat model and its shortcut twin on phantoms."""
