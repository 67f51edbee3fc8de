"""An example for each kind of statement."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, str] = {
    "task": """task {
  input  ticket: text { about = "as the customer wrote it" }
  output team: "billing" | "shipping"
  rollout = chain_of_thought
}""",
    "input": """input ticket: text { about = "as the customer wrote it"; limit = 2k tokens }""",
    "output": """output urgent: bool | none { about = "none where the ticket does not say" }""",
    "skill": '''skill route_tickets {
  about = "Route a support ticket to the team that can resolve it. Use it for each new ticket."
  present = advice
  frozen section role = """
    You route support tickets to exactly one team.
  """
  trainable section rules { limit = 800 tokens }
  slow section guidance { limit = 300 tokens }
}''',
    "section": """trainable section rules = "Read the whole ticket first." { limit = 800 tokens }""",
    "model": """model target = "openai/gpt-5.5-mini" { temperature = 0; key = env("OPENAI_API_KEY") }
model optimizer = target""",
    "data": """data {
  source = "tickets.jsonl"
  field customer: text
  field product: text { column = "Product name" }
  split = 2 : 1 : 2
  group = customer
  seed = 7
}""",
    "field": """field gold: text { column = "team" }""",
    "metric": """metric close = f1(reply)
metric brief(x: text, most: tokens) = clamp(1 - tokens(x) / most, 0, 1)
goal score = 0.9 * close + 0.1 * brief(reply, 100 tokens)""",
    "goal": """goal correct = exact_match(team)""",
    "rubric": '''rubric helpful = """
  The reply says what happens next, and promises nothing that the team cannot keep.
"""
goal good = judge(reply, helpful, model = grader)
model grader = "openai/gpt-5.5"
gate better = candidate.good > incumbent.good''',
    "criterion": '''rubric quality {
  criterion solved = """
    5  the customer need not write again
    3  right, but something is left open
    1  wrong, or beside the question
  """ { weight = 2 }
  criterion honest = "Does the reply state only what the ticket shows?"
}
goal good = judge(reply, quality, model = grader)
model grader = "anthropic/claude-opus-5"
gate better = candidate.good > incumbent.good''',
    "optimize": """optimize { batch = 40; edits = cosine(8, 4); candidates = 2 }""",
    "evolve": """evolve { sessions = ["claude-code"]; calls = 2_000; cost = $5; time = 2 h; error = 5%; drift = 5% }""",
    "budget": """budget { epochs = 4; patience = 8 steps; calls = 20k; time = 90 min }""",
    "gate": """gate better = candidate.correct > incumbent.correct
gate safe = regressed(correct, by = product) <= 10%
gate calm for slow = candidate.correct >= incumbent.correct - 1%""",
    "require": """require trustworthy = flip_rate(correct) <= 5%
require improved""",
}
"""By the kind's word: a part of a program, whole statements."""
