"""Does training beat the skill: one model without and with a LoRA adapter, without and with the compiled skill.

`adapter` finds adapters and reads what is known of their training; `judges` reads how far judges can be trusted; `job`
resolves arms and pairs; `run` measures and judges; `answer` puts the result into sentences; `report` is the table and
the JSON.
"""
