"""Import an archive of ChatGPT through the command line, interrupt it with Ctrl-C, resume it, and count what is stored.

    python -m tests.interrupted_import FOLDER DSN [--embedding local] [--messages 20000]

FOLDER is empty or does not exist; DSN is an empty database. It prints what the terminal showed, and the counts.
"""

import argparse
import asyncio
import json
import re
import sys
import zipfile
from pathlib import Path

import asyncpg

from tests.terminal import CTRL_C, Terminal, in_terminal

MESSAGES_EACH = 100
STOPS = (0.3, 0.7)  # shares of the messages after which Ctrl-C is pressed
SECONDS = 3_600.0
COUNTS = """
select
    (select count(*) from dialogue.messages where not is_notice) as messages,
    (select count(distinct (session_id, content)) from dialogue.messages where not is_notice) as distinct_messages,
    (select count(*) from memory.memories where kind = 'exchange') as exchanges,
    (select count(*) from dialogue.sessions) as sessions,
    (select count(*) from memory.memories where kind = 'episode') as episodes
"""


def write_archive(path: Path, messages: int) -> None:
    """Write the archive: conversations of a hundred messages, each with a text of its own."""
    conversations = [create_conversation(number) for number in range(messages // MESSAGES_EACH)]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps(conversations))
        archive.writestr("user.json", "{}")


def create_conversation(number: int) -> dict[str, object]:
    mapping: dict[str, object] = {"root": {"id": "root", "message": None, "parent": None}}
    parent, at = "root", 1_600_000_000 + number * 86_400
    for place in range(MESSAGES_EACH):
        ref, role = f"m{number}-{place}", ("user", "assistant")[place % 2]
        text = f"Parcel {number * MESSAGES_EACH + place} goes to shelf {place % 17} of room {number % 23}."
        content = {"content_type": "text", "parts": [text]}
        fields = {"author": {"role": role}, "create_time": at + place, "metadata": {}, "recipient": "all"}
        mapping[ref] = {"id": ref, "message": {"id": ref, "content": content, **fields}, "parent": parent}
        parent = ref
    return {"conversation_id": f"c{number}", "create_time": at, "current_node": parent, "mapping": mapping}


def read_progress(terminal: Terminal) -> int:
    """Return the last number of imported items that the terminal shows."""
    shown = re.findall(r"importing\s.*?(\d+)/\d+", "\n".join(terminal.rows))
    return int(shown[-1]) if shown else 0


async def run_import(folder: Path, stop_at: int | None, settings: dict[str, str]) -> None:
    """Run the import, press Ctrl-C when so many items are imported, and print what the terminal showed."""
    command_line = ("import", str(folder / "chatgpt.zip"), "--yes")
    async with in_terminal(folder, *command_line, **settings) as command:
        ended = asyncio.ensure_future(command.process.wait())
        async with asyncio.timeout(SECONDS):
            while stop_at is not None and read_progress(command.terminal) < stop_at:
                command.terminal.changed.clear()
                await command.terminal.changed.wait()
            progress = [row for row in command.terminal.rows if "importing" in row]
            if stop_at is not None:
                command.terminal.type(CTRL_C)
            status = await ended
            await asyncio.sleep(0.5)
        rows = [row for row in command.terminal.rows if row]
        typed = [*progress, *(["^C"] if stop_at else []), *rows]
        report("\n".join([f"$ newton {' '.join(command_line)}", *typed, f"(exit status {status})\n"]))


def report(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def measure(folder: Path, dsn: str, *, embedding: str, messages: int) -> None:
    settings = {"NEWTON_EMBEDDING_PROVIDER": embedding}
    for stop_at in (*(int(share * messages) for share in STOPS), None, None):
        await run_import(folder, stop_at, settings)
        connection = await asyncpg.connect(dsn)
        report(f"{dict(await connection.fetchrow(COUNTS) or {})}\n")
        await connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("dsn")
    parser.add_argument("--embedding", default="none")
    parser.add_argument("--messages", type=int, default=20_000)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    write_archive(given.folder / "chatgpt.zip", given.messages)
    (given.folder / "newton.toml").write_text(f'database_url = "{given.dsn}"\n', encoding="utf-8")
    asyncio.run(measure(given.folder.resolve(), given.dsn, embedding=given.embedding, messages=given.messages))


if __name__ == "__main__":
    main()
