"""What a model's words mean: one file a reader, each named, versioned and free of any model."""
