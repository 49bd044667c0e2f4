"""The few networks that several models share."""
