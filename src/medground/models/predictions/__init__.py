"""Predictions made elsewhere: maps, masks, boxes and scores, read one way by ``run``, ``score`` and ``validate``."""
