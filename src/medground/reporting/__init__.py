"""The outer ring: figures, tables and the report."""
