"""From what a model said to the probability of the true caption."""
