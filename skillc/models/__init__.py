"""All calls to language models: client, backends, pacing, cache, ledger."""
