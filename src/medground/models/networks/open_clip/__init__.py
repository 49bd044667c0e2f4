"""The towers that open_clip builds from its configuration, without open_clip."""
