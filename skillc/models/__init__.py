"""The one door to language models: client, cache, ledger, and the embedded `rulebook` model."""
