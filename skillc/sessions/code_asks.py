"""Find what a script's code does that no skill may learn from a session.

A script acts by itself, so it can do in code what a rule may not ask for in words. Its lines are searched for calls
that send data, read secrets, run code from elsewhere, remove files or outlive the run. This is a list of known calls:
code that hides its calls is found only if it decodes and runs text. Only a sandbox contains such a script.
"""

from __future__ import annotations

import re

_CALLS = {
    "opens a network connection": (
        r"\b(?:curl|wget|ncat|netcat|telnet|scp|sftp|rsync|ssh|socat)\s+(?:-|\S*[@:./$\"'])|/dev/(?:tcp|udp)/",
        r"\bnc\s+(?:-\w+\s+)*[\w$][\w.$-]*\s+[\d$]",
        r"^\s*(?:import|from)\s[^\n#]*\b(?:urllib(?!\.(?:parse|error|robotparser))|urllib3|requests|httpx|aiohttp|http"
        r"|socket|smtplib|ftplib|telnetlib|paramiko|xmlrpc|websockets?)\b",
        r"\b(?:fetch|XMLHttpRequest|WebSocket|axios(?:\.\w+)?|https?\.(?:request|get))\s*\(",
        r"\brequire\(\s*['\"](?:node:)?(?:https?|net|dgram|tls|axios|node-fetch)['\"]",
        r"\b(?:Invoke-WebRequest|Invoke-RestMethod|Net\.WebClient|Net::HTTP|LWP::|HTTP::Tiny|IO::Socket)\b",
    ),
    "reads secrets": (
        r"\bos\.environ\b(?!\s*(?:\[|\.get\b|\.setdefault\b))|\b(?:json\.dumps|dict|print|str|repr)\(\s*(?:os\.)?environ\b",
        r"\bprocess\.env\b(?!\s*[.\[])|^\s*(?:printenv|env|export -p|set)\s*(?:$|[|>])",
        r"\.ssh\b|\bid_(?:rsa|ed25519|ecdsa)\b|/etc/(?:passwd|shadow)\b|\.aws/|\.netrc\b|\.git-credentials\b|\.kube/config\b",
        r"\.npmrc\b|\.pypirc\b|\.docker/config|/proc/\S*environ\b|\bkeyring\b|\bsecurity find-\w+-password\b",
    ),
    "runs code from elsewhere": (
        r"\b(?:exec|eval|compile|Function)\s*\([^\n]*(?:b64decode|fromhex|unhexlify|decompress|rot13|atob|marshal|urlopen)",
        r"\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b|\bbase64\s+(?:-d|-D|--decode)\b[^\n]*\||\b(?:marshal|pickle)\.loads?\(",
        r"\b__import__\s*\(|\bimport_module\s*\(",
        r"\b(?:pip3?|npm|npx|gem|cargo|uvx?|apt(?:-get)?|brew)\s+(?:install|add|exec|run)\b|\bnpx\s+\S",
    ),
    "removes files": (
        r"\brm\s+(?:-\w*\s+)*-\w*[rR]\w*\s+(?:-\S+\s+)*[\"']?(?:/|~|\$\{?HOME|\.\.)",
        r"\bshutil\.rmtree\(|\bmkfs\b|\bdd\s+[^\n]*\bof=/dev/|\bfs\.rm(?:Sync)?\(",
    ),
    "stays beyond its run": (
        r"\bcrontab\b|\bsystemctl\s+(?:--user\s+)?(?:enable|start)\b|\blaunchctl\b|\bauthorized_keys\b|\bschtasks\b|\bnohup\b",
        r"\.(?:bashrc|zshrc|profile|bash_profile|zprofile)\b|/etc/(?:cron|init|systemd)",
        r"(?:CLAUDE|AGENTS|GEMINI|MEMORY)\.md\b",
    ),
}
_SIGNS = {kind: re.compile("|".join(f"(?:{each})" for each in calls), re.M) for kind, calls in _CALLS.items()}


def asks_of_code(text: str) -> tuple[str, ...]:
    """Return what the code of a script does that no skill may learn from a session, by kind."""
    return tuple(kind for kind, sign in _SIGNS.items() if sign.search(text))
