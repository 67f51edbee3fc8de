"""The plans of the model layer's tests serve here too, and the engine of containers of the sandbox's."""

import sys
from pathlib import Path

for name in ("models", "sandbox"):
    sys.path.insert(0, str(Path(__file__).parent.parent / name))

from played_engine import engine  # noqa: E402, F401
