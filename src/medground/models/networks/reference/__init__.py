"""The reference model: text, network, losses, training."""
