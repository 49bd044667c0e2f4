"""Tables of MIMIC-CXR and the boxes of MS-CXR."""
