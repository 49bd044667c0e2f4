"""The report of Medical-Checklist."""
