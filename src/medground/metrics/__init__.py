"""Pure functions on arrays: nothing here knows a dataset, a model or a protocol's name."""
