"""The report of GridVQA-X."""
