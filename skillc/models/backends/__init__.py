"""What answers for a model: litellm, a function, a command, a served vLLM, the rulebook."""
