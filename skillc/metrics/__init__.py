"""What is measured on one rollout: the primitives, and the expressions over them."""

from skillc.metrics import quasi_match as quasi_match
from skillc.metrics import questions as questions
