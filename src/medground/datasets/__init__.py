"""One file a public dataset; ``base`` holds the contract."""
