"""Image-text models of chest radiographs, one file a family."""
