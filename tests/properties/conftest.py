"""Hypothesis over compiled code: the first call compiles, which is no failure."""

from hypothesis import HealthCheck, settings

settings.register_profile("properties", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("properties")
