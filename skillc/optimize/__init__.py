"""The training loop: rollout, then draft or reflect, aggregate, screen, select, edit; then the gates.

`loop/train.py` is the outer loop and `loop/step.py` one step. `engine.py` contains `Engine`, the immutable run context,
and `SearchState`: the search, its memory and its counters. Each step takes a state and returns the next. `rollouts.py`
is the only module that measures a skill, `ask.py` the only one that asks the optimizer, and `scripts.py` the only one
that tests scripts; a resumed run answers all three from its record. `host.py` contains the interfaces to the run around
the loop.

- *loop*: `baseline.py` does what comes before the first decision, `null_arm.py` compares the initial skill with itself;
  `schedule.py` has seeds, batches, the edit schedule and patience.
- *propose*: `reflect.py` asks for edits and merges those that conflict; `draft.py` rewrites whole sections. `cases.py`
  chooses and renders cases, `near.py` searches by text, `prompting.py` renders prompts, `replies.py` reads replies.
- *screen*: `judges.py` chooses the examples that judge an edit, `screen.py` tries edits alone on them, and
  `candidates.py` makes candidates of those that help.
- *gate*: `pool.py` races candidates in waves, `decide.py` applies the decisions, `credit.py` credits edits, `gate.py`
  gathers the evidence of gates.
- *memory*: `memory.py` contains the shelf, the fates of edits, and the effects of the last candidates.
- *strategies*: optional parts. `mechanism.py` is the interface and `registry.py` the list; `acceptance.py` decides by
  the gates or accepts always. A new mechanism is one file and one entry (`tests/optimize/test_mechanisms.py`).
- *end*: `final.py` runs the test.
- *other searches*: `description.py` trains a description by the same loop; `methods/` runs DSPy's optimizers and the
  single rewrite under the same gates, and chooses the search of a plan (`methods/run.py`).
"""
