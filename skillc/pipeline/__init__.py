"""The pipelines of `compile`, `compile --sanity` and `tidy`: run one plan to its end, and report."""
