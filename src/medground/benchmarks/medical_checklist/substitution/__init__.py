"""One term for another of its type: which mentions, which replacements, and how the sentence stays whole."""
