"""What adapters share: preprocessing, precision, texts, maps, weight files."""
