"""Runs that are killed again and again, and must end with the bytes of one that nobody touched.

``make torture`` kills runs of three benchmarks 200 times each and prints what happened; the tests do the same a few
times. A run is started in a process of its own, killed with signal 9 after a random share of the time that a whole run
takes, started again with another number of workers, and so on until it ends; then predictions, rows and summaries are
compared with those of the run that nobody touched, and the next folder begins.
"""
