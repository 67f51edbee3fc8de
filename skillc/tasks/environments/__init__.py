"""Rollouts of many turns in a text environment: `rollout = environment("module:Class") { ... }`.

`protocol.py` is what a user's class provides, and the names of registered classes. `worker.py` is the process that one
environment runs in, and `process.py` starts, asks and lends such processes. `play.py` is the kind of rollout: the
target plays an example, turn by turn. `acting.py` lets it answer with its action alone, in the turns that `prompts.py`
writes and reads; `tool_agent.py` lets it call tools first. `user.py` plays a simulated user. `household` generates
household games and plays them with ALFWorld's engine.
"""

from skillc.tasks.environments.protocol import InadmissibleAction, TextEnvironment, register_environment

__all__ = ["InadmissibleAction", "TextEnvironment", "register_environment"]
