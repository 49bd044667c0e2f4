"""Models that answer GridVQA-X questions from a fixed list of answers."""
