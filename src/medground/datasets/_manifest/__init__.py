"""How a user's own table is read: its two forms, and the regions that its rows describe."""
