"""The report of CXReasonDial."""
