"""LobA for LLaVA folders: a ``<SEG>`` token, low-rank adapters, and a mask decoder of the SAM family."""
