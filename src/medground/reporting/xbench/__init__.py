"""The report of XBench."""
