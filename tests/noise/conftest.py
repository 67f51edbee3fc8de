import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
sys.path.insert(0, str(Path(__file__).parent))

from conftest_cli import shop

__all__ = ["shop"]
