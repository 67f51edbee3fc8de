"""Rollouts of many turns in a text environment: `rollout = environment("module:Class") { ... }`.

`protocol.py` is what a user's class provides, and the names of registered classes. `worker.py` is the process that one
environment runs in, `process.py` its handle in skillc, and `pool.py` all processes of a run. `play.py` is the kind of
rollout: the target plays an example, turn by turn; `prompts.py` writes and reads the turns, and `user.py` plays a
simulated user. `household.py` and `alfworld.py` generate household games and play them with ALFWorld's engine.
"""

from skillc.tasks.environments.protocol import InadmissibleAction, TextEnvironment, register_environment

__all__ = ["InadmissibleAction", "TextEnvironment", "register_environment"]
