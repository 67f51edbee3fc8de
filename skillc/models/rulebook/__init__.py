"""The embedded model: reads and writes rules; no weights, no key, no network. See README.md beside this file."""
