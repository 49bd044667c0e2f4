"""How the evidence judge reads a reply: clean, find numbers, split by task, bind, conclude."""
