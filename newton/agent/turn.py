"""One turn: record, context, model, record. What the person said is kept before anything else, so nothing loses it."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from newton.agent.bearing import listen
from newton.agent.compacting import Compacting
from newton.agent.gate import Gate
from newton.agent.quoting import quoted
from newton.agent.sending import Draft, Letter, in_view, spoken
from newton.agent.speaking import Limits, Speaking
from newton.clock import Clock
from newton.cognition import bundles, workingset
from newton.cognition.bundle import Bundle
from newton.cognition.bundles import AnsweredBy, Served
from newton.cognition.context import Contexts
from newton.cognition.refreshing import Refreshed, Refreshing
from newton.cognition.request import InView, Request
from newton.cognition.workingset import Sitting
from newton.db.pool import Database, Tx
from newton.dialogue import log, sessions
from newton.dialogue.artifacts import Writer
from newton.dialogue.condensing import USUAL, Sizes
from newton.dialogue.lines import Line
from newton.dialogue.log import Origin
from newton.errors import CensoredError, ProviderError
from newton.heart.identity import Hand, Proposal, Spot
from newton.memory import store
from newton.memory.hygiene import clean, mended
from newton.memory.memory import Teller, Trust, least
from newton.memory.representations import Count
from newton.providers.chat import ChatModel

ORIGIN = "chat"
FORBIDDEN = "A censor forbids this input."
UNREAD = "nobody reads the conversation, so what can be quoted was looked for"
BLANK = "The model answered without a word."


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What goes into a turn."""

    session_id: UUID
    text: str
    frame: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a turn ended. `degraded` says why no model answered to the end; `quoted`, whether it only quotes memory;
    `failed`, whether a model was set and should have.

    `proposed` is what the person seems to want from now on; it waits for their yes.
    """

    text: str
    given: Refreshed
    degraded: str | None = None
    quoted: bool = False
    failed: bool = False
    proposed: Sequence[Proposal] = ()

    @property
    def bundle(self) -> Bundle:
        """What the model was given, or what was quoted from."""
        return self.given.bundle

    @property
    def caveat(self) -> str | None:
        """What to know about the answer besides its words."""
        return None if self.degraded in (None, FORBIDDEN) else f"{self.degraded} {self.shortcoming}"

    @property
    def shortcoming(self) -> str:
        """What a degraded answer is instead of a whole one."""
        return "This answer only quotes memory." if self.quoted else "The answer breaks off there."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """A context, and what the model is asked with it; or why it is not asked. `heard` is the least trust of what the
    conversation tells it from outside, None when that is nothing."""

    given: Refreshed
    draft: Draft | None = None
    letter: Letter | None = None
    degraded: str | None = None
    heard: Trust | None = None


class _Heard(NamedTuple):
    """What a person said: its place in the session and the memory that it became; without them it stood there already,
    word for word at the same moment. A session that is a branch begins with the lines of its `origins`."""

    text: str
    place: int | None = None
    memory_id: UUID | None = None
    origins: Sequence[Origin] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """What is being answered: its place in the session, and the context that goes with it."""

    session_id: UUID
    given: Refreshed
    asked: int | None
    heard: Trust | None = None

    @property
    def outside(self) -> Trust | None:
        """The least trust of all that the model is told from outside."""
        return _least((self.heard, *self.given.bundle.outside))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Takes turns for one agent. `model` is None when no model is set."""

    agent_id: UUID
    db: Database
    clock: Clock
    count: Count
    contexts: Contexts
    compacting: Compacting
    gate: Gate
    model: ChatModel | None
    limits: Limits
    sizes: Sizes = USUAL

    async def take(self, said: Said) -> AsyncGenerator[str | Answer]:
        """Pieces of the reply as they come, then the Answer. Stopped early, it keeps what had come until then."""
        heard = await asyncio.shield(self._hear(said.session_id, clean(said.text, what="message")))
        ruling = await self.gate.check(heard.text, "input")
        proposed = () if ruling.blocks else await self._heed(said.session_id, heard)
        ready = await (self._unasked(said, heard, FORBIDDEN) if ruling.blocks else self._prepared(said, heard))
        degraded = ready.degraded
        turn = _Turn(session_id=said.session_id, given=ready.given, asked=heard.place, heard=ready.heard)
        pieces: list[str] = []
        stopped = f"A censor forbids this: {ruling.words}." if ruling.blocks else None
        try:
            if ready.draft and ready.letter:
                async with aclosing(self.gate.watched(self.speaking.stream(ready.draft, ready.letter))) as stream:
                    async for piece in stream:
                        pieces.append(piece)
                        yield piece
        except ProviderError as error:
            degraded = str(error)
        except CensoredError as error:
            degraded = stopped = error.what
        finally:
            # Shielded: a turn that is cancelled while the model speaks keeps the words that were heard.
            spoke = await asyncio.shield(self._record_reply(turn, "".join(pieces), by="model"))
        if not spoke:
            degraded = degraded or BLANK
            turn = turn if stopped else replace(turn, given=await self._quotable(said, heard, ready))
            pieces = [stopped or quoted(turn.given.bundle)]
            yield pieces[0]
            await self._record_reply(turn, pieces[0], by="censor" if stopped else "memory")
        await self._note(said.session_id, turn.given.bundle)
        yield Answer(
            text="".join(pieces),
            given=turn.given,
            degraded=degraded,
            quoted=not spoke and stopped is None,
            failed=self.model is not None and degraded is not None and stopped is None,
            proposed=proposed,
        )

    async def _note(self, session_id: UUID, bundle: Bundle) -> None:
        """What was shown, and what of the session is to be kept in short. A turn that was cut off leaves it to the
        next one."""
        async with self.db.work(self.agent_id) as tx:
            shown = [item.memory_id for item in bundle.items]
            await store.note_read(tx, shown, agent_id=self.agent_id, now=self.clock.now())
            await workingset.hold(tx, shown, at=self._sitting(session_id))
        writer = Writer(session_id=session_id, by=self._by(), count=self.count, sizes=self.sizes)
        async with self.db.work(self.agent_id) as tx:
            await writer.note(tx)

    @property
    def speaking(self) -> Speaking:
        return Speaking(
            agent_id=self.agent_id,
            db=self.db,
            clock=self.clock,
            count=self.count,
            model=self.model,
            limits=self.limits,
        )

    async def _prepared(self, said: Said, heard: _Heard) -> _Prepared:
        tokens = self.count(heard.text)
        if why := await self.speaking.why_not(tokens):
            return await self._unasked(said, heard, why)
        shares = await self.speaking.shares()
        whole = await self.compacting.view(said.session_id, most=shares.conversation)
        view = [item for item in whole if heard.place is None or item.first < heard.place]
        end = max((item.last for item in view), default=-1)
        talk = shares.talk(spoken(view, count=self.count), tokens, count=self.count)
        sent = replace(in_view(said.session_id, talk, end=end), inherited=tuple(heard.origins))
        request = replace(self._request(said, heard, sent), tokens=shares.context)
        given = await Refreshing(contexts=self.contexts).for_turn(request)
        draft = Draft(context=given.bundle.text, view=talk, text=heard.text, tokens=tokens, marks=shares.marks)
        letter = draft.letter(shares.usable, count=self.count)
        if why := await self.speaking.why_not(shares.gauge.tokens(letter.counted, len(letter.messages))):
            return await self._unasked(said, heard, why)
        async with self.db.work(self.agent_id) as tx:
            told = await log.outside(tx, talk, agent_id=self.agent_id, session_id=said.session_id)
        return _Prepared(given=given, draft=draft, letter=letter, heard=_least(told))

    async def _unasked(self, said: Said, heard: _Heard, why: str) -> _Prepared:
        """Without a model nobody reads the conversation, so its lines may be quoted like any other memory."""
        bundle = await self.contexts.build(self._request(said, heard, None))
        return _Prepared(given=Refreshed(bundle=bundle, how="built", because=UNREAD), degraded=why)

    async def _quotable(self, said: Said, heard: _Heard, ready: _Prepared) -> Refreshed:
        """A context that goes with the conversation leaves out what stands there, and one that stood was made for an
        earlier input: what answers this one may not be in them."""
        if ready.draft is None:
            return ready.given
        return (await self._unasked(said, heard, "")).given

    def _request(self, said: Said, heard: _Heard, in_view: InView | None) -> Request:
        return Request(
            agent_id=self.agent_id,
            input=heard.text,
            itself=heard.memory_id,
            tokens=self.limits.context,
            adapt=True,
            frame=said.frame,
            session_id=said.session_id,
            in_view=in_view,
        )

    async def _record_reply(self, turn: _Turn, text: str, *, by: AnsweredBy) -> bool:
        """Whether there was a word. A reply that no model gave is an aside: none is told that it had said it, and it is
        not learnt once more. One that may repeat what was told from outside is a memory that is believed no more than
        that."""
        if not (words := mended(text)):
            return False
        line = Line(
            role="assistant",
            content=words,
            said_at=self.clock.now(),
            aside=by != "model",
            heard=turn.outside,
        )
        async with self.db.work(self.agent_id) as tx:
            replied, _ = await self._append(tx, turn.session_id, line)
            if turn.asked is not None and replied is not None:
                await bundles.served(tx, self._served(turn, turn.asked, replied, by))
        return True

    def _served(self, turn: _Turn, asked: int, replied: int, by: AnsweredBy) -> Served:
        return Served(
            agent_id=self.agent_id,
            session_id=turn.session_id,
            bundle_id=turn.given.bundle.bundle_id,
            at=self.clock.now(),
            how=turn.given.how,
            because=turn.given.because,
            answered_by=by,
            asked=asked,
            replied=replied,
        )

    async def _hear(self, session_id: UUID, text: str) -> _Heard:
        """Keeps what the person said."""
        async with self.db.work(self.agent_id) as tx:
            line = Line(role="user", content=text, said_at=self.clock.now())
            origins = await log.origins(tx, agent_id=self.agent_id, session_id=session_id)
            return _Heard(text, *await self._append(tx, session_id, line), origins)

    async def _heed(self, session_id: UUID, heard: _Heard) -> Sequence[Proposal]:
        """What is now proposed for the identity. Nothing else of a turn proposes anything: no reply, and nothing that
        was recalled for it."""
        if heard.place is None:
            return ()
        async with self.db.work(self.agent_id) as tx:
            hand = Hand(by=self._by(), count=self.count)
            return await listen(tx, heard.text, Spot(session_id, heard.place), hand=hand)

    async def _append(self, tx: Tx, session_id: UUID, line: Line) -> tuple[int | None, UUID | None]:
        """The line's place in the session and the memory it became; neither when it stands there already, word for word
        at the same moment."""
        placed = await sessions.append(
            tx, [line], session_id=session_id, by=self._by(), count=self.count, sizes=self.sizes
        )
        held = await workingset.hold_lines(tx, [p.position for p in placed], at=self._sitting(session_id))
        return (placed[0].position if placed else None), (held[0] if held else None)

    def _sitting(self, session_id: UUID) -> Sitting:
        return Sitting(
            agent_id=self.agent_id, session_id=session_id, now=self.clock.now(), capacity=self.limits.working
        )

    def _by(self) -> Teller:
        return Teller(agent_id=self.agent_id, now=self.clock.now(), origin=ORIGIN, trust="user")


def _least(tiers: Iterable[Trust | None]) -> Trust | None:
    known: list[Trust] = [tier for tier in tiers if tier]
    return least(known) if known else None
