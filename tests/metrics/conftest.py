"""Lets the tests share `metric_plans` and `judged_programs`, and the transports of the model layer."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1] / "models"))
