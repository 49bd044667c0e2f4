"""Plan, store and engine: knows benchmarks by their contract only, and no model."""
