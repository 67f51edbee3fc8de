"""A collector on this machine that speaks OTLP over HTTP, and the tree of what it has received."""

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Collector:
    """What was received.

    Attributes:
        url: its address.
        requests: path and headers of each.
        spans: in order, each with its attributes as a dict.
        resources: attributes of each resource.
    """

    def __init__(self, status=200):
        self.requests, self.spans, self.resources, self.scopes = [], [], [], []
        self.status, self.url = status, ""

    def take(self, path, headers, body):
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        self.requests.append((path, headers))
        if self.status != 200:
            return
        request = ExportTraceServiceRequest()
        request.ParseFromString(gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body)
        for resource in request.resource_spans:
            self.resources.append(_values(resource.resource.attributes))
            for scope in resource.scope_spans:
                self.scopes.append(scope.scope.name)
                self.spans += [ReceivedSpan(each) for each in scope.spans]

    def named(self, name):
        return [each for each in self.spans if each.name == name]

    def path(self, span):
        """Names from the root to a span."""
        by_id = {each.id: each for each in self.spans}
        names = [span.name]
        while span.parent:
            span = by_id[span.parent]
            names.append(span.name)
        return names[::-1]


class ReceivedSpan:
    """A span as it was received."""

    def __init__(self, span):
        self.name, self.kind, self.id, self.parent = span.name, span.kind, span.span_id, span.parent_span_id
        self.trace, self.attributes = span.trace_id, _values(span.attributes)
        self.status, self.description = span.status.code, span.status.message
        self.seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9


def _values(attributes):
    return {each.key: _value(each.value) for each in attributes}


def _value(value):
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None


@contextmanager
def collector(status=200):
    """Run a collector that answers with a status."""
    found = Collector(status)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.take(self.path, self.headers, body)
            self.send_response(found.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
