"""What the models of GridVQA-X share: the language, the drawing and the network."""
