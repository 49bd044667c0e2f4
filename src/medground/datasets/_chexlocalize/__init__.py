"""The two files of ground truth of CheXlocalize."""
