"""Recipes that train the models that ship, above models and worlds."""
