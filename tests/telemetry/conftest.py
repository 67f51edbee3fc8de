"""Lets the tests share programs and transports of others; spans need the extra `otel`."""

import sys
from importlib.util import find_spec
from pathlib import Path

collect_ignore_glob = [] if find_spec("opentelemetry") and find_spec("opentelemetry.exporter") else ["test_*.py"]

for folder in ("", "cli", "models"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / folder))
