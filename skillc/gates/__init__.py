"""What a gate means: terms, functions, intervals, proofs, evaluation on partial evidence, drawing."""
