"""The loop, one file a stage: rollout, reflect, aggregate, screen, select, edit, gate.

`loop/train.py` is the outer loop and `loop/step.py` one step. `engine.py` has `Engine`, the immutable run context,
and `State`: the search, its memory and its counters. Each step takes a state and returns the next. `rollouts.py` is
the only module that measures a skill, and `ask.py` the only one that asks the optimizer; the record of a run answers
both when it is resumed.

- *loop*: `baseline.py` measures the initial skill; `schedule.py` has seeds, batches, the edit schedule and patience.
- *propose*: `reflect.py` asks for edits and `aggregate.py` merges those that overlap; `draft.py` writes whole
  sections and tries them. `cases.py` limits what may be shown, `contrast.py` groups failures and chooses near right
  cases, `near.py` searches by text, `prompting.py` renders a briefing and a request, `replies.py` reads what comes
  back.
- *screen*: `judges.py` chooses the examples that judge an edit, `screen.py` tries edits alone on them, `select.py`
  makes candidates of them, `rewrite.py` writes them if `update` is not `edits`.
- *gate*: `acceptance.py` chooses how candidates are decided, `pool.py` races them in waves, `decide.py` applies the
  decision, `credit.py` credits edits; `gate.py` gathers what gates read.
- *memory*: `memory.py` has the shelf, the fates of edits, and what the last candidates did.
- *strategies*: what is optional. `mechanism.py` is the interface and `registry.py` the list: lapses, lookups, rule
  counts, rollback, slow update, tidy, meta skill. `makers.py` has the makers of candidates, `ahead.py` sends the next
  batch while a gate waits. A new mechanism is one file and one entry (`tests/optimize/test_mechanisms.py`).
- *end*: `final.py` runs the test.
- `methods/` runs DSPy's optimizers and the single rewrite before the same gates.
"""
