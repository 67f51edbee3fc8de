"""Small programs that play the documented interfaces of agents, and a program for skillc that compiles by one of them.

Each reads its skill where the agent would, answers a question by the rules in it, and writes a file as a tool would.
With the variable `FAULT` it fails as the agent does; with `KILL_AT` that run kills the process that started it.
"""

from __future__ import annotations

import json
from pathlib import Path

from fake_agents import program

_START = r"""
import json, os, pathlib, re, sqlite3, sys, time
home, fault = pathlib.Path.home(), os.environ.get("FAULT", "")
log = os.environ.get("PLAYED")
if log:
    open(log, "a").write("run\n")
    if os.environ["KILL_AT"] == str(len(open(log).readlines())):
        os.kill(os.getppid(), 9)

def follow(skill, prompt):
    "The answer of the first rule that applies."
    text = prompt.split("## text\n")[-1].split("\n\n")[0].split("\n## ")[0].lower()
    for line in skill.splitlines():
        form = r'- If the text mentions (.*?)(?:, unless it mentions (.*?))?, answer "?([\w-]+)'
        found = re.match(form, line)
        words = [re.findall(r'"([^"]+)"', part or "") for part in found.groups()[:2]] if found else [[], []]
        if any(word in text for word in words[0]) and not any(word in text for word in words[1]):
            return found[3]
    return "unknown"

def skill_in(folder):
    return "".join(path.read_text() for path in sorted(folder.glob("*/SKILL.md")))

def work():
    if fault == "hang":
        time.sleep(600)
    if fault == "garbage":
        print("\x00\xff not what it says"); sys.exit(0)
    if fault == "killed":
        os.kill(os.getpid(), 9)
    if fault == "huge":
        while True:
            sys.stdout.write("x" * 2**20)
    if fault == "key":
        sys.exit("401 for key " + " ".join(os.environ.values()))
    pathlib.Path("made.txt").write_text("made")
"""

CODEX = r"""
config = (pathlib.Path(os.environ["CODEX_HOME"]) / "config.toml").read_text()
assert sys.argv[1:3] == ["exec", "--json"] and 'wire_api = "responses"' in config and os.environ["SKILLC_MODEL_KEY"]
prompt = sys.stdin.read()
# The body arrives where the prompt begins with the name and a space.
named = re.match(r"\$([\w-]+) ", prompt)
skill = (home / ".agents/skills" / named[1] / "SKILL.md").read_text() if named else ""
def say(**event): print(json.dumps(event), flush=True)
say(type="thread.started", thread_id="1")
say(type="turn.started")
if fault == "failed":
    say(type="error", message="Reconnecting... 1/2")
    say(type="turn.failed", error={"message": "stream disconnected"}); sys.exit(0)
work()
ran = {"type": "command_execution", "command": "touch made.txt", "aggregated_output": "", "exit_code": 0}
say(type="item.completed", item=ran)
say(type="item.completed", item={"type": "agent_message", "text": follow(skill, prompt)})
if fault != "cut":
    say(type="turn.completed", usage={"input_tokens": 200, "cached_input_tokens": 80, "output_tokens": 20})
"""

OPENCODE = r"""
config = json.loads((home / ".config/opencode/opencode.json").read_text())
options = config["provider"]["skillc"]["options"]
assert sys.argv[1] == "run" and "--pure" in sys.argv and options["baseURL"]
assert options["apiKey"] == "{env:SKILLC_MODEL_KEY}"
prompt = sys.stdin.read()
skill = "".join(pathlib.Path(path).read_text() for path in config["instructions"])
def say(type, **part): print(json.dumps({"type": type, "part": part}), flush=True)
tokens = {"input": 60, "output": 10, "reasoning": 0, "cache": {"read": 40, "write": 0}}
def step(reason): say("step_finish", reason=reason, cost=0, tokens=tokens)
if fault == "failed":
    error = {"name": "APIError", "data": {"message": "stream disconnected"}}
    print(json.dumps({"type": "error", "error": error})); sys.exit(0)
say("step_start")
work()
state = {"status": "completed", "input": {"command": "touch made.txt"}, "output": "", "metadata": {"exit": 0}}
say("tool_use", tool="bash", state=state)
step("tool-calls")
if fault != "cut":
    say("text", text=follow(skill, prompt))
    step("stop")
"""

HERMES = r"""
root = pathlib.Path(os.environ["HERMES_HOME"])
model = json.loads((root / "config.yaml").read_text())["model"]
assert sys.argv[1] == "chat" and model["provider"] == "custom" and model["base_url"] and "--yolo" in sys.argv
prompt = next(word for word in sys.argv if word.startswith("--query=")).removeprefix("--query=")
named = sys.argv[sys.argv.index("--skills") + 1] if "--skills" in sys.argv else None
skill = (root / "skills" / named / "SKILL.md").read_text() if named else ""
db = sqlite3.connect(root / "state.db")
counts = "input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens"
db.execute(f"CREATE TABLE sessions (id, parent_session_id, started_at, {counts}, actual_cost_usd, api_call_count)")
named = "session_id, role, content, tool_call_id, tool_calls, tool_name"
db.execute(f"CREATE TABLE messages (id INTEGER PRIMARY KEY, {named})")
def say(role, content, **more):
    names = ["session_id", "role", "content", *more]
    places = ",".join("?" * len(names))
    db.execute(f"INSERT INTO messages ({','.join(names)}) VALUES ({places})", ["s", role, content, *more.values()])
say("user", prompt)
if fault == "failed":
    db.execute("INSERT INTO sessions VALUES ('s', NULL, 1, 0, 0, 0, 0, 0, NULL, 0)"); db.commit()
    print("API call failed after 3 retries: stream disconnected"); sys.exit(0)
work()
call = {"id": "c", "function": {"name": "terminal", "arguments": json.dumps({"command": "touch made.txt"})}}
say("assistant", "", tool_calls=json.dumps([call]))
say("tool", json.dumps({"output": "", "exit_code": 0, "error": None}), tool_call_id="c", tool_name="terminal")
if fault != "cut":
    say("assistant", follow(skill, prompt))
db.execute("INSERT INTO sessions VALUES ('s', NULL, 1, 120, 20, 80, 0, 0, NULL, 2)")
db.commit()
print(follow(skill, prompt))
"""

CLAUDE_CODE = r"""
assert sys.argv[1:4] == ["-p", "--output-format", "stream-json"] and "--verbose" in sys.argv
assert not os.environ["ANTHROPIC_BASE_URL"].endswith("/v1") and os.environ["ANTHROPIC_API_KEY"]
prompt = sys.stdin.read()
installed = skill_in(home / ".claude/skills")
skill = sys.argv[sys.argv.index("--append-system-prompt") + 1] if "--append-system-prompt" in sys.argv else ""
assert not skill or skill.strip() in installed
def say(**event): print(json.dumps(event), flush=True)
say(type="system", subtype="init", model=sys.argv[sys.argv.index("--model") + 1])
if fault == "failed":
    say(type="result", subtype="success", is_error=True, result="stream disconnected", num_turns=1)
    sys.exit(0)
work()
use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "touch made.txt"}}
say(type="assistant", message={"id": "m", "content": [use]})
result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": ""}]}
say(type="user", message={"content": [result]})
answer = follow(skill, prompt)
say(type="assistant", message={"id": "n", "content": [{"type": "text", "text": answer}]})
usage = {"input_tokens": 100, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 20}
if fault != "cut":
    say(type="result", subtype="success", is_error=False, result=answer, num_turns=2, total_cost_usd=0.5, usage=usage)
"""

PLAYED = {"codex": CODEX, "opencode": OPENCODE, "hermes": HERMES, "claude_code": CLAUDE_CODE}
FAULTS = ("failed", "cut", "hang", "garbage", "killed", "huge", "key")

PROGRAM = """language 1
task {
  input  text: text
  output kind: "fruit" | "tool"
  rollout = KIND {
    executable = "./agent"; sandbox = unsafe; tokens = 1_000 tokens; environment = [env("PLAYED"), env("KILL_AT")]
  }
}
skill sort_things {
  about = "Say what kind of thing a text is about."
  trainable section rules { limit = 600 tokens }
}
model target    = "PROVIDER/tiny" { base_url = "http://127.0.0.1:9099/v1"; price { input = $1; output = $2 } }
model optimizer = "rulebook/v1"
data { source = "things.jsonl"; split = 1 : 1 : 1; seed = 3 }
goal correct = exact_match(kind)
optimize { batch = 6; drafts = 0; update = edits }
budget { steps = 2; cost = $1 }
gate better = candidate.correct > incumbent.correct
"""
WORDS = {"fruit": ("apple", "pear"), "tool": ("hammer", "saw")}


def play(folder: Path, kind: str, code: str | None = None) -> Path:
    """Write the program that plays an agent, as `agent`."""
    return program(folder, _START + (code or PLAYED[kind]))


def write_program(folder: Path, kind: str) -> Path:
    """Write a program that compiles by an agent, its data, and what plays the agent."""
    play(folder, kind)
    things = [(kind, WORDS[kind][i // 2 % 2], i) for i, kind in ((i, ("fruit", "tool")[i % 2]) for i in range(18))]
    rows = [{"id": f"x{i}", "text": f"{word} number {i}", "kind": kind} for kind, word, i in things]
    (folder / "things.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    provider = "anthropic" if kind == "claude_code" else "openai"
    text = PROGRAM.replace("KIND", kind).replace("PROVIDER", provider)
    (folder / "things.skill").write_text(text)
    return folder / "things.skill"
