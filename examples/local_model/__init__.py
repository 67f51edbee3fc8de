"""A small language model that follows rules, and how it is made."""
