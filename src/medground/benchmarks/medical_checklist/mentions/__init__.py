"""Where a caption names a concept: dictionary, abbreviations, negation, brackets; spans of other finders."""
