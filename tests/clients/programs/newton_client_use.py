"""The package newton-client: turns of a session."""

from typing import Any

from harness import DOWN_MODEL, UNKNOWN_MODEL, CellTask, Result, catch, serve
from newton_client import ApiError, SyncClient


def run(task: CellTask, text: str, *, session: str = "monday", token: str = "", **fields: Any) -> list[Any]:
    with SyncClient(task.url, token=token or task.token, max_attempts=1) as client:
        return list(client.run_turn(session, text, **fields))


def ask(task: CellTask, text: str, **fields: Any) -> str:
    return "".join(event.data["text"] for event in run(task, text, **fields) if event.type == "delta")


def chat(task: CellTask) -> Result:
    return {"text": ask(task, task.say)}


def stream(task: CellTask) -> Result:
    return {"chunks": [event.data["text"] for event in run(task, task.say) if event.type == "delta"]}


def remembers(task: CellTask) -> Result:
    told, answer = ask(task, task.fact), ask(task, task.question, session="tuesday")
    return {"texts": [told, answer]}


def errors(task: CellTask) -> Result:
    return {
        "token": catch(ApiError, lambda: ask(task, task.say, token="nwt_wrong")),
        "model": catch(ApiError, lambda: ask(task, task.say, model=UNKNOWN_MODEL)),
        "down": describe_result(run(task, task.say, model=DOWN_MODEL)[-1]),
    }


def describe_result(event: Any) -> Result:
    """Return why a turn has no reply of the model."""
    return {"class": event.type, "status": None, "message": event.data["degraded"]}


def private(task: CellTask) -> Result:
    return {"text": ask(task, task.say, private=[])}


if __name__ == "__main__":
    serve({cell.__name__: cell for cell in (chat, stream, remembers, errors, private)})
