"""Tables and documents from elsewhere: one reader of each kind, and one join with its report."""
