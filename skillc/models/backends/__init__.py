"""What answers for a model: OpenAI's protocol, litellm, a function, a command, a served vLLM, the rulebook."""
