# Generated from newton/client/sessions.py by scripts/make-reference; change that module instead.
"""Client operations on what a session has: what is put into it, its statistics, and its entities."""

from ..json_types import IdLike, JsonDict, encode_segment
from .artifacts import SyncArtifactOperations


class SyncSessionOperations(SyncArtifactOperations):
    """Client operations on one session, which is named by its first argument."""

    def inject(self, session: str, **content: object) -> JsonDict:
        """Put something into a session: exactly one of `memory_id`, `text` and `messages`; return what was put in.

        Every context of the session shows the memory or the text. `messages` names those of another session: `session`,
        `first` and `last`. The session is created if needed.
        """
        return self.post(f"/v1/sessions/{encode_segment(session)}/injections", content)

    def injections(self, session: str) -> list[JsonDict]:
        """List the memories, texts and messages that were put into a session, oldest first."""
        return self.get_items(f"/v1/sessions/{encode_segment(session)}/injections")

    def eject(self, session: str, injection_id: IdLike) -> JsonDict:
        """Take out what was put into a session; return it. The id of the memory is accepted too."""
        path = f"/v1/sessions/{encode_segment(session)}/injections/{injection_id}"
        return (self.request("DELETE", path)).json()

    def session_stats(self, session: str) -> JsonDict:
        """Return the tokens of a session by part, its compactions, what is masked, and its latest context."""
        return self.get(f"/v1/sessions/{encode_segment(session)}/stats")
