"""OpenTelemetry spans of a run: off by default, and then one look at a variable.

`spans.py` is what the rest of skillc uses: it imports no OpenTelemetry. `otel.py` makes spans with its SDK, `export.py`
sends them to a collector with a bounded queue, and reports once what could not be sent.
"""
