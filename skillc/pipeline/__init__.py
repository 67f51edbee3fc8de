"""`compile`, `compile --sanity` and `tidy`: each one run from the plan to its end, and its report."""
