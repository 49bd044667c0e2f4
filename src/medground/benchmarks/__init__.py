"""One folder a benchmark; ``base`` holds the contract that the engine knows."""
