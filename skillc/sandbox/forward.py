"""Inside a sandbox: runs a command, and passes its connections to a few local ports through a Unix socket.

    python forward.py SOCKET PROXY_PORT PORTS COMMAND...

A connection to PROXY_PORT is passed on as it is, to a proxy. One to a port of PORTS, separated by commas, begins with
a request for that port of the machine outside. This file is run as a script, so it imports nothing but the standard
library; it ends with the status of the command.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading

_CHUNK = 65536


def main() -> int:
    """Run the command and return its status, 128 and the signal if one killed it."""
    path, proxy, ports, *command = sys.argv[1:]
    listeners = [_listener(int(proxy), 0)] + [_listener(int(port), int(port)) for port in ports.split(",") if port]
    child = os.fork()
    if child == 0:
        for listener, _ in listeners:
            listener.close()
        try:
            os.execvp(command[0], command)
        except OSError as problem:
            sys.stderr.write(f"{command[0]}: {problem.strerror}\n")
            os._exit(127)
    for listener, target in listeners:
        threading.Thread(target=_accept, args=(listener, path, target), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if status >= 0 else 128 - status


def _listener(port: int, target: int) -> tuple[socket.socket, int]:
    return socket.create_server(("127.0.0.1", port), backlog=64), target


def _accept(listener: socket.socket, path: str, target: int) -> None:
    while True:
        near, _ = listener.accept()
        threading.Thread(target=_forward, args=(near, path, target), daemon=True).start()


def _forward(near: socket.socket, path: str, target: int) -> None:
    with near, socket.socket(socket.AF_UNIX) as far:
        try:
            far.connect(path)
            if target:
                far.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % target)
                answer = b""
                while not answer.endswith(b"\r\n\r\n"):
                    byte = far.recv(1)
                    if not byte:
                        return
                    answer += byte
                if b" 200 " not in answer.partition(b"\r\n")[0] + b" ":
                    return
            back = threading.Thread(target=_pipe, args=(far, near), daemon=True)
            back.start()
            _pipe(near, far)
            back.join()
        except OSError:
            pass


def _pipe(source: socket.socket, target: socket.socket) -> None:
    try:
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


if __name__ == "__main__":
    sys.exit(main())
