"""Judges of replies: what was covered, and whether it agrees with measured evidence. One file a judge."""
