"""Figures of XBench: every number comes from the summary, in percent."""
