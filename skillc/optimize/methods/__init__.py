"""The peers' methods: DSPy's optimizers and a single rewrite, on the same module, ledger, gates and verdict."""
