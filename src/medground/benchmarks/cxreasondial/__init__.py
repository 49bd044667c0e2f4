"""CXReasonDial: dialogues about a radiograph, held turn by turn against measured evidence."""
