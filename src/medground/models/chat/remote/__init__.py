"""What a chat model behind a server needs: the wire format, waiting, limits, budgets, a cache of replies, a ledger."""
