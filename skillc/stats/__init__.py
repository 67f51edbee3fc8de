"""Statistics: the verdict's test, random subsets, intervals of means, and what chance alone does."""
