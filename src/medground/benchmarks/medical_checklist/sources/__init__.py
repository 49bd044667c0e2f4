"""Where captions come from: one reader a file."""
