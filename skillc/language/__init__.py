"""From text to a checked program: source, syntax, names, types and units. Checking never raises on any text."""
