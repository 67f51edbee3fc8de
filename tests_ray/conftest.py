"""The agents and plans of `tests` serve here too."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path += [str(TESTS / "tasks"), str(TESTS / "models")]
