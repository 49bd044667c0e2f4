"""One file a model family; ``base`` holds the capabilities that benchmarks ask for."""
