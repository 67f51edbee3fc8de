"""vLLM servers that skillc starts: `serve = vllm { ... }`."""
