"""Made sessions, each with what a person would say of it: the set that the signals' certainties are measured on.

The cases with an even number were at hand when the signals were written, those with an odd number are held out.
"""

from labelled import agent, session

from skillc.sessions.session import Mark
from skillc.trajectories.trajectory import Observation, ToolCall

W, F, U = "worked", "failed", "unclear"


def run(command, output="", status=0):
    text = output if not status else f"Exit code {status}\n{output}"
    return [ToolCall("", {"command": command}, "Bash"), Observation(text, status != 0)]


def edit(path="src/app.py", result="ok", failed=False):
    return [ToolCall("", {"file_path": path}, "Edit"), Observation(result, failed)]


REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected."
GREEN = "============ 12 passed in 0.31s ============"
RED = "======== 2 failed, 10 passed in 0.35s ========"


def case(outcome, *parts, end="unknown", marks=()):
    steps = [step for part in parts for step in (part if isinstance(part, list) else [part])]
    return outcome, steps, end, marks


CASES = (
    case(W, "Fix the date parser.", edit(), run("pytest -q", GREEN), agent("Fixed.")),
    case(W, "Make the importer skip empty rows.", edit(), run("pytest", GREEN), agent("Done."), "Thanks, works."),
    case(F, "Fix the date parser.", edit(), run("pytest -q", RED, 1), agent("Two tests still fail.")),
    case(F, "Speed up the query.", edit(), run("python -m pytest", RED, 1), agent("Please have a look.")),
    case(W, "Write a failing test for issue 12.", edit(), run("pytest", RED, 1), agent("Added."), "Great, thanks."),
    case(W, "Add a test that fails for the bug, don't fix it.", edit(), run("pytest", RED, 1), agent("It fails now.")),
    case(W, "Is `foo` used anywhere?", run("grep -rn foo src", "", 1), agent("No, it isn't used."), "Perfect."),
    case(W, "Does anything import yaml?", run("rg 'import yaml'", "", 1), agent("Nothing imports it.")),
    case(F, "Fix the login.", edit(), agent("Fixed."), "Great, now it's broken on mobile too. Thanks for nothing."),
    case(F, "Deploy it.", run("make deploy"), agent("Deployed."), "Oh wonderful, thanks, the site is down."),
    case(W, "Rename the module.", agent("Should I keep an alias?"), "no", edit(), agent("Renamed."), "Thanks!"),
    case(W, "Add a column.", agent("Is it nullable?"), "No.", edit(), run("pytest", GREEN), agent("Added.")),
    case(F, "Sort by name.", edit(), agent("Sorted."), "No, that's wrong. By last name.", edit(), agent("Done now.")),
    case(F, "Set the timeout to 5 s.", edit(), agent("Set."), "I said five seconds, not minutes!"),
    case(W, "Build the docs.", run("mkdocs build", "error", 1), edit(), run("mkdocs build"), agent("Built.")),
    case(W, "Compile it.", run("cargo build", "error[E0308]", 101), edit(), run("cargo build"), agent("It compiles.")),
    case(F, "Compile it.", run("cargo build", "error[E0308]", 101), agent("I was unable to fix the type error.")),
    case(F, "Start the server.", run("npm start", "EADDRINUSE", 1), agent("The port is taken.")),
    case(W, "Bump the version.", edit(), run("git commit -am 'Bump'"), agent("Committed."), "thx"),
    case(W, "Update the changelog.", edit("CHANGELOG.md"), run("git commit -am log"), agent("Committed.")),
    case(F, "Refactor it.", edit(), agent("Refactored."), "Undo that.", run("git checkout -- ."), agent("Undone.")),
    case(F, "Clean up utils.", edit(), agent("Cleaned."), "please revert", run("git restore ."), agent("Restored.")),
    case(F, "Drop the table.", edit("m.sql", REJECTED, True), agent("Understood, I stopped.")),
    case(F, "Rewrite the README.", edit("README.md", REJECTED, True), agent("What would you like instead?")),
    case(W, "Add caching.", edit(), run("git checkout -- ."), edit(), run("pytest", GREEN), agent("Done.")),
    case(W, "Use a queue.", edit(), run("git stash"), edit(), run("git commit -am q"), agent("Done."), "lgtm"),
    case(F, "Translate to German.", edit(), agent("Übersetzt."), "Nein, das stimmt so nicht."),
    case(F, "Mach die Tests grün.", edit(), agent("Fertig."), "Geht immer noch nicht."),
    case(W, "Behebe den Fehler.", edit(), agent("Behoben."), "Super, klappt. Danke!"),
    case(W, "Corrige el enlace.", edit(), agent("Corregido."), "Perfecto, gracias."),
    case(F, "Répare le script.", edit(), agent("Réparé."), "Ça ne marche pas."),
    case(F, "Arregla la prueba.", edit(), agent("Arreglada."), "No funciona."),
    case(W, "What does `walk` do?", agent("It walks a tree."), "ok thanks"),
    case(W, "How do I undo a commit?", agent("`git reset --soft HEAD~1`"), "that works"),
    case(F, "What is the limit?", agent("100."), "That's not what I asked. The limit of tokens?"),
    case(F, "When is the release?", agent("On Monday."), "this is wrong, it was moved"),
    case(
        *(F, "Show the total in the footer of the page.", edit(), agent("Done.")),
        *("Show the total in the footer of the page!", edit(), agent("Done.")),
    ),
    case(
        *(F, "Please add a dark mode to settings.", agent("It exists.")),
        *("please add a dark mode to the settings", agent("Ah.")),
    ),
    case(W, "Fix lint.", run("ruff check .", "3 errors", 1), edit(), run("ruff check ."), agent("Clean."), "nice"),
    case(W, "Format the code.", run("black --check .", "", 1), run("black ."), run("black --check ."), agent("Ok.")),
    case(F, "Solve it.", agent("I could not reproduce the problem."), end="finished"),
    case(F, "Convert the file.", run("convert a b", "no decoder", 1), agent("Unfortunately it cannot be read.")),
    case(F, "Migrate the schema.", edit(), agent("Working"), end="interrupted"),
    case(F, "Rotate the keys.", run("rotate"), agent("API Error"), end="failed"),
    case(W, "Summarize this.", agent("Here it is."), marks=(Mark("user_feedback", 1, "user"),)),
    case(W, "Draft a reply.", agent("Dear Eva"), marks=(Mark("thumbs", "up", "user"),)),
    case(F, "Summarize this.", agent("Here it is."), marks=(Mark("user_feedback", 0, "user"),)),
    case(F, "Draft a reply.", agent("Dear Eva"), marks=(Mark("correctness", 0.1, "evaluator"),)),
    case(W, "Answer the ticket.", agent("Sent."), marks=(Mark("helpfulness", 0.9), Mark("latency", 0.1))),
    case(F, "Answer the ticket.", agent("Sent."), "not what i wanted", marks=(Mark("helpfulness", 0.9),)),
    case(U, "Pick a name.", agent("`walker`"), marks=(Mark("score", 1.0), Mark("rating", 0.0))),
    case(U, "Look at the logs.", run("tail app.log", "ok"), agent("What should I look for?")),
    case(W, "Fix test_a.", run("pytest", RED, 1), edit(), run("pytest", GREEN), agent("All pass."), "thank you"),
    case(
        W, "Fix the build.", run("go test ./...", "FAIL\tapp\t0.1s", 1), edit(), run("go test ./...", "ok  \tapp\t0.1s")
    ),
    case(
        F, "Fix all tests.", run("pytest", RED, 1), edit(), run("pytest -k date", "= 1 passed in 0.1s ="), agent("Ok.")
    ),
    case(F, "Fix it.", edit(), run("npm test", "Tests:  3 failed, 9 passed, 12 total", 1), agent("Almost.")),
    case(W, "Fix it.", edit(), run("npm test | tail -5", "Tests:  12 passed, 12 total"), agent("Fixed.")),
    case(F, "Fix it.", edit(), run("cargo test | tail -3", "test result: FAILED. 3 passed; 1 failed;"), agent("Ok.")),
    case(
        W, "Add a test.", edit(), run("python -m unittest", "Ran 5 tests in 0.1s\n\nOK"), agent("Added."), "looks good"
    ),
    case(F, "Add paging.", edit(), run("pytest", GREEN), agent("Added."), "Still doesn't work in Safari."),
    case(F, "Fix the crash.", edit(), run("pytest", GREEN), agent("Fixed."), "it still crashes"),
    case(W, "Check the config.", agent("All fine."), "No problem, thanks."),
    case(W, "Is the cache safe?", agent("Yes."), "nothing wrong with it then, good job"),
    case(W, "Write a loop.", edit(), agent("Written."), "Now document it.", edit(), agent("Documented.")),
    case(F, "Write a loop.", edit(), agent("Written."), "you forgot the last element", agent("Right.")),
    case(W, "Do it.", edit(), agent("Done."), "no, use a set", edit(), agent("Done."), "perfect"),
    case(F, "Install it.", run("pip install foo", "No matching distribution", 1), run("pip list", "a"), agent("Hm.")),
    case(F, "Publish.", run("npm publish", "403", 1), run("ls", "a"), agent("You have to log in.")),
    case(W, "Compare them.", run("diff a b", "1c1", 1), agent("They differ in line 1."), "Thanks"),
    case(W, "Which process is it?", run("pgrep -f app", "", 1), agent("None runs."), "ok great"),
    case(W, "Port it to Go.", edit(), run("go test ./...", "ok  \tapp\t0.2s"), agent("Ported.")),
    case(W, "Add retries.", edit(), run("cargo test", "test result: ok. 7 passed; 0 failed;"), agent("Added.")),
    case(W, "Fix the rounding.", edit(), run("npx jest", "Tests:       4 passed, 4 total"), agent("Fixed."), "merci"),
    case(W, "Escape the names.", edit(), run("pytest tests/names", "== 3 passed in 0.02s =="), agent("Escaped.")),
    case(F, "Fix the leak.", edit(), run("make test", "make: *** [test] Error 1", 2), agent("One test is red.")),
    case(F, "Support UTF-16.", edit(), run("mvn -q test", "Tests run: 9, Failures: 1, Errors: 0", 1), agent("Nearly.")),
    case(W, "Lock the file.", edit(), run("rspec", "8 examples, 0 failures"), agent("Locked."), "Works now."),
    case(W, "Retry on 503.", edit(), run("npx mocha", "  6 passing (20ms)"), agent("It retries.")),
    case(W, "Answer the customer.", agent("Answered."), marks=(Mark("quality", 0.8, "evaluator"),)),
    case(W, "Classify the mail.", agent("billing"), marks=(Mark("correct", True, "evaluator"),)),
    case(F, "Classify the mail.", agent("sales"), marks=(Mark("correct", False, "evaluator"),)),
    case(F, "Answer the customer.", agent("Answered."), marks=(Mark("rating", "bad", "user"),)),
    case(W, "Tag the release.", edit(), run("git commit -am 1.2 && git push"), agent("Pushed.")),
    case(W, "Pin the versions.", edit(), run("git commit -am Pin"), agent("Pinned."), "Now the docs, please."),
    case(
        F,
        "Use tabs.",
        edit(),
        run("git commit -am Tabs"),
        agent("Ok."),
        "Revert it",
        run("git revert HEAD"),
        agent("Ok"),
    ),
    case(F, "Inline it.", edit(), run("git commit -am I"), agent("Ok."), "this is not what i meant", agent("Sorry.")),
    case(W, "Make it pass.", edit(), run("pytest -q | tail -1", "5 passed in 0.10s"), agent("It passes.")),
    case(F, "Make it pass.", edit(), run("pytest -q", "1 failed, 5 passed in 0.10s", 1), agent("One is flaky.")),
    case(W, "Draw the chart.", run("python plot.py"), agent("It is in chart.png."), "Schön, danke"),
    case(W, "Resize the images.", run("python resize.py", "40 files"), agent("All 40 are resized.")),
)


def session_of(number):
    """Return the session of a case."""
    from dataclasses import replace

    _, steps, end, marks = CASES[number]
    return replace(session(f"openai:{number:02}", *steps), end=end, marks=tuple(marks))


def half(held_out):
    """Return the numbers of the cases of one half."""
    return range(int(held_out), len(CASES), 2)
