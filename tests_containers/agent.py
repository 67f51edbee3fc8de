#!/usr/bin/env python3
"""An agent: calls a model with a shell as its tool until it answers, and reports what it used."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

skill, url, model, report = sys.argv[1:]
SHELL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
messages = [{"role": "user", "content": sys.stdin.read()}]
if skill:
    messages.insert(0, {"role": "system", "content": Path(skill).read_text()})
usage, steps, turns = {"input": 0, "cached": 0, "output": 0}, [], 0
while True:
    body = json.dumps({"model": model, "messages": messages, "tools": [SHELL]}).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ['SKILLC_MODEL_KEY']}"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/chat/completions", body, headers), timeout=20) as reply:
        given = json.load(reply)
    turns += 1
    counts = given["usage"]
    usage["input"] += counts["prompt_tokens"]
    usage["cached"] += counts["prompt_tokens_details"]["cached_tokens"]
    usage["output"] += counts["completion_tokens"]
    message = given["choices"][0]["message"]
    messages.append(message)
    calls = message.get("tool_calls") or ()
    for call in calls:
        command = json.loads(call["function"]["arguments"])["command"]
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout + done.stderr})
        steps += [
            ["call", "bash", {"command": command}],
            ["observation", done.stdout + done.stderr, bool(done.returncode)],
        ]
    if not calls:
        break
Path(report).write_text(json.dumps({"usage": usage, "turns": turns, "steps": steps}))
print(message["content"])
