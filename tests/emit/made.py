"""A folder of a skill for the tests of `emit`."""

BODY = """# Route tickets

- Invoices go to billing; see [the list](references/teams.md).
- A parcel goes to shipping. 日本
"""
ABOUT = "Route a support ticket to the team that can resolve it. Use it for each new ticket."


def skill_folder(root, *, name="route-tickets", about=ABOUT, further="", body=BODY, files=None):
    folder = root / "skills" / name
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {about}\n{further}---\n\n{body}")
    (folder / "references/teams.md").write_text("billing, shipping\n")
    (folder / "scripts").mkdir()
    (folder / "scripts/run.sh").write_text("#!/bin/sh\necho hi\n")
    (folder / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    for path, content in (files or {}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def tree(folder):
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.name.startswith(".skillc-emit")
    }
