"""One run from the plan to its end: `compile`, `sanity` and `tidy`, and the report that each prints."""
