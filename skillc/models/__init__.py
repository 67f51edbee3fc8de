"""All calls to language models: client, backends, pacing, cache, ledger.

`client.py` takes a call through these steps: its ticket in the queue, its reservation in the `charged` account, the
cache, a single flight for equal calls, the preflight of every model before the first send, the first call of a long
prefix, its attempts, and its charge. `concurrency.py` has the queue, the single flight, the prefix and the event loop.
DSPy enters by `dspy_lm.py`, from any thread or loop.

- *who answers*: `roles.py` resolves each role once, with its price (`prices.py`), its endpoint and its backend
  (`endpoint.py`). `backends/registry.py` lists the backends: `openai.py` for OpenAI, vLLM and servers like them,
  `litellm.py` (the only file that imports, patches or reads litellm) for all other providers, `function.py`,
  `command.py`, a vLLM server over `serving/`, and the embedded model over `rulebook/`. `connections.py` sends the
  requests of `openai.py` and closes the connections of both; `chat_replies.py` and `error_bodies.py` read replies.
- *what came back*: `failures.py` classifies failures and has the fixes that messages offer; `attempts.py` retries.
- *how fast*: `pace.py` learns the concurrency and the rate of one endpoint, keeps declared quotas and is its circuit
  breaker; `pacing.py` has the queue in front of each endpoint.
- *what was paid*: `ledger.py` has two accounts with caps, the receipts of attempts and the reserve for the final test.
- *what is kept*: `cache.py` has the folder of texts, and extends the single flight to all processes that share it;
  `cache_folder.py` is what `skillc cache` does.
"""
