"""The small chat model's network: a LLaVA of transformers around a vision tower of ours, and a mask head."""
