"""Plans are those of the tests of the model layer."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "models"))
