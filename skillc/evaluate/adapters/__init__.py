"""Compare training with the skill: one model with and without a LoRA adapter, with and without the compiled skill.

`adapter` finds adapters and reads the records of their training. `judges` reads the flip rates of judges. `job`
resolves arms and pairs. `run` measures and judges. `answer` renders the result as sentences, `report` as table and
JSON.
"""
