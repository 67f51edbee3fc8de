"""The sessions that the rules of a compiled skill are from, and what a withdrawn session does to them."""
