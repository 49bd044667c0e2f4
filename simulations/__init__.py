"""Do the intervals and tests hold what they promise? ``make simulate`` asks simulated data of the papers' shapes."""
