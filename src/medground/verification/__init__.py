"""What each network must compute on golden cases: one file a model."""
