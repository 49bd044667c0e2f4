"""What can be solved without the image: blind scorers, one file each, and what they come to."""
