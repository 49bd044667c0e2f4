"""Closed worlds whose every fact and cause is known: no torch, no model, no benchmark."""
