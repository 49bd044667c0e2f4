"""Chat models: adapters, the small model of ours, LobA, and ways of decoding."""
