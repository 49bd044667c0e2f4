"""One file a method that explains a model's answer."""
