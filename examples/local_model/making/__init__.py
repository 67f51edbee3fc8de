"""Generator, tokenizer, training and evaluation of the model."""
