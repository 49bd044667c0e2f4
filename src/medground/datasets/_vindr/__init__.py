"""VinDr-CXR's tables and the merging of its readers."""
