"""All calls to language models: client, backends, pacing, cache, ledger.

A call walks through `client.py`: its ticket in the queue, its reservation in the `charged` account, the cache, a
single flight for all that ask for the same, the preflight of every model before the first send, the first call of a
long prefix (`concurrency.py` has the queue, the single flight, the prefix and the event loop), its attempts, and what
it was charged. DSPy enters by `dspy_lm.py`, from any thread or loop.

- *who answers*: `roles.py` resolves each role once, with its price (`prices.py`), its endpoint and its backend.
  `backends/registry.py` lists the backends: `litellm.py` (the only file that imports, patches or reads litellm),
  `function.py`, `command.py`, `vllm.py` over `serving/`, and `rulebook.py` over `rulebook/`, the embedded model.
  `guard.py` ends commands and servers however skillc ends.
- *what came back*: `failures.py` classifies what an attempt met and has the fixes that a user is offered;
  `attempts.py` retries.
- *how fast*: `pacing/`. `pace.py` learns the concurrency and the rate of one endpoint and keeps declared quotas,
  `outage.py` is its circuit breaker, `slots.py` the queue in front of it, `endpoints.py` holds them all.
- *what was paid for*: `ledger.py` has two books of accounts with caps, and the reserve for the final test; a receipt
  (`receipts.py`) is on the disk before an attempt is sent.
- *what is kept*: `cache/`. `replies.py` is the folder of texts, `claims.py` extends the single flight to all
  processes that share it, `folder.py` is what `skillc cache` does.
"""
