"""One turn: record, context, model, record. What the person said is kept before anything else, so nothing loses it."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from uuid import UUID

from newton.agent.compacting import Compacting
from newton.agent.gate import Gate
from newton.agent.holding import Lease, held
from newton.agent.keeping import Heard, Keeping, Replied
from newton.agent.quoting import quoted
from newton.agent.rounds import OWN, Rounds
from newton.agent.scope import AgentScope
from newton.agent.sending import Draft, Letter, described, in_view, messages, spoken, worked
from newton.agent.speaking import Limits, Shares, Speaking
from newton.agent.tools import Toolbox, offered
from newton.cognition.bundle import Bundle
from newton.cognition.bundles import AnsweredBy
from newton.cognition.context import Contexts
from newton.cognition.refreshing import Refreshed, Refreshing
from newton.cognition.request import InView, Request
from newton.dialogue import log
from newton.dialogue.compaction.fitting import fitted
from newton.dialogue.condensing import USUAL, Sizes
from newton.dialogue.lines import Line
from newton.dialogue.view import Shown
from newton.errors import CensoredError, ProviderError
from newton.heart.identity import Proposal
from newton.memory.hygiene import clean
from newton.memory.memory import Trust, least_of
from newton.providers.chat import Call, ChatModel, Finish, Manner, Reply, ToolModel

ORIGIN = "chat"
FORBIDDEN = "A censor forbids this input."
BLANK = "The model answered without a word."
UNREAD = "nobody reads the conversation, so what can be quoted was looked for"
OWN_SHARE = 8  # our own tools may take this part of what a model reads, or it gets none


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a program that asks wants besides an answer: the manner of it, instructions of its own before the context,
    at most so many tokens, and signs by which it finds lines again, of a reply's words and calls."""

    manner: Manner = field(default_factory=Manner)
    instructions: str = ""
    reply: int | None = None
    sign: Callable[[str, Sequence[Call]], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What goes into a turn. `earlier` are lines before the text that the session may not have yet, and `ref` is the
    caller's id of the text. When `kept`, the text is in the session already, and `earlier` is what came of it."""

    session_id: UUID
    text: str
    frame: str | None = None
    ref: str | None = None
    earlier: Sequence[Line] = ()
    kept: bool = False
    terms: Terms | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a turn ended. `degraded` says why no model answered to the end; `quoted`, whether it only quotes memory;
    `failed`, whether a model was set and should have, `forbidden`, whether a censor stopped it.

    `calls` are for whoever asked to answer, `tokens` what the model read and wrote, in all its rounds. `proposed` is
    what the person seems to want from now on; it waits for their yes.
    """

    text: str
    given: Refreshed
    degraded: str | None = None
    quoted: bool = False
    failed: bool = False
    forbidden: bool = False
    calls: Sequence[Call] = ()
    finish: Finish = "stop"
    tokens: tuple[int, int] = (0, 0)
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
    """A context, and what the model is asked with it, and how; or why it is not asked."""

    given: Refreshed
    draft: Draft | None = None
    letter: Letter | None = None
    rounds: Rounds | None = None
    degraded: str | None = None

    @property
    def replies(self) -> Sequence[Reply]:
        return self.rounds.replies if self.rounds else ()

    @property
    def calls(self) -> tuple[Call, ...]:
        return self.rounds.calls if self.rounds else ()

    @property
    def heard(self) -> Trust | None:
        """The least trust of all that the model was told from outside."""
        return least_of((self.rounds and self.rounds.heard, *self.given.bundle.outside))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Takes turns for one agent; `origin` names the door. `model` is None when no model is set, and without `tools` it
    gets none of ours."""

    scope: AgentScope
    contexts: Contexts
    compacting: Compacting
    gate: Gate
    model: ChatModel | None
    limits: Limits
    sizes: Sizes = USUAL
    tools: Toolbox | None = None

    async def take(self, said: Said) -> AsyncGenerator[str | Answer]:
        """Pieces of the reply as they come, then the Answer. Stopped early, it keeps what had come until then.

        Turns of a session wait for each other, in whatever process; raises BusyError when one does not end, or when
        another has taken over because this one stood still; then it keeps nothing more.
        """
        text = clean(said.text, what="message")
        async with held(self.scope.db, agent_id=self.scope.agent_id, session_id=said.session_id) as lease:
            keeping = self._keeping(said, lease)
            line = None if said.kept else Line(role="user", content=text, said_at=self.scope.now(), ref=said.ref)
            heard = await lease.through(keeping.hear(text, line, said.earlier))
            async with aclosing(self._taken(said, heard, keeping)) as pieces:
                while (piece := await lease.during(anext(pieces, None))) is not None:
                    yield piece

    async def _taken(self, said: Said, heard: Heard, keeping: Keeping) -> AsyncGenerator[str | Answer]:
        ruling = await self.gate.check(heard.text, "input")
        proposed = () if ruling.blocks else await keeping.heed(heard)
        ready = await (self._unasked(said, heard, FORBIDDEN) if ruling.blocks else self._prepared(said, heard, keeping))
        degraded = ready.degraded
        pieces: list[str] = []
        stopped = f"A censor forbids this: {ruling.words}." if ruling.blocks else None
        try:
            if ready.draft and ready.letter and ready.rounds:
                async with aclosing(ready.rounds.stream(ready.draft, ready.letter)) as stream:
                    async for piece in stream:
                        pieces.append(piece)
                        yield piece
        except ProviderError as error:
            degraded = str(error)
        except CensoredError as error:
            degraded = stopped = error.what
        finally:
            # A turn that is cancelled while the model speaks keeps the words that were heard.
            replied = _replied(said, heard, ready, "".join(pieces), "model")
            spoke = await keeping.lease.through(keeping.reply(replied))
        if not spoke:
            degraded = degraded or BLANK
            ready = ready if stopped else replace(ready, given=await self._quotable(said, heard, ready))
            pieces = [stopped or quoted(ready.given.bundle)]
            yield pieces[0]
            await keeping.reply(_replied(said, heard, ready, pieces[0], "censor" if stopped else "memory"))
        await keeping.note(ready.given.bundle)
        yield Answer(
            text="".join(pieces),
            given=ready.given,
            degraded=degraded,
            quoted=not spoke and stopped is None,
            failed=self.model is not None and degraded is not None and stopped is None,
            forbidden=stopped is not None,
            calls=ready.calls,
            finish=_finish(ready, degraded),
            tokens=_spent(ready.replies),
            proposed=proposed,
        )

    @property
    def speaking(self) -> Speaking:
        return Speaking(scope=self.scope, model=self.model, limits=self.limits)

    def _keeping(self, said: Said, lease: Lease) -> Keeping:
        return Keeping(
            scope=self.scope,
            session_id=said.session_id,
            sizes=self.sizes,
            capacity=self.limits.working,
            lease=lease,
        )

    async def _prepared(self, said: Said, heard: Heard, keeping: Keeping) -> _Prepared:
        wanted = (said.terms and said.terms.reply) or self.limits.reply
        limits = replace(self.limits, reply=min(wanted, self.limits.reply))
        speaking = replace(self.speaking, limits=limits)
        if why := await speaking.why_not(self.scope.count_tokens(heard.text)):
            return await self._unasked(said, heard, why)
        shares = await speaking.shares()
        whole = await self.compacting.view(said.session_id, most=shares.conversation)
        before, since = self._cut(said, heard, whole, shares)
        view = whole if said.kept else [item for item in whole if heard.place is None or item.first < heard.place]
        end = max((item.last for item in view), default=-1)
        draft = self._draft(said, heard, since, shares)
        talk = shares.talk(
            before, draft.tokens + draft.besides(count=self.scope.count_tokens), count=self.scope.count_tokens
        )
        sent = replace(in_view(said.session_id, [*talk, *since], end=end), inherited=tuple(heard.origins))
        request = self._request(said, heard, sent)
        given = await Refreshing(contexts=self.contexts).for_turn(replace(request, tokens=shares.context))
        draft = replace(draft, context=given.bundle.text, view=talk)
        letter = draft.letter(shares.usable, count=self.scope.count_tokens)
        if why := await speaking.why_not(shares.gauge.tokens(letter.counted, len(letter.messages))):
            return await self._unasked(said, heard, why)
        async with self.scope.transaction() as tx:
            told = await log.outside(tx, [*talk, *since], agent_id=self.scope.agent_id, session_id=said.session_id)
        rounds = self._rounds(
            said, speaking, keeping, room=shares.usable, heard=least_of((*told, *given.bundle.outside))
        )
        return _Prepared(given=given, draft=draft, letter=letter, rounds=rounds)

    def _cut(self, said: Said, heard: Heard, view: Sequence[Shown], shares: Shares) -> tuple[list[Shown], list[Shown]]:
        """What stood before the input, and what has come of it already, which takes half of what is read at most."""
        shown = (
            worked(view, own=OWN, count=self.scope.count_tokens)
            if said.terms
            else spoken(view, count=self.scope.count_tokens)
        )
        if not said.kept:
            return [item for item in shown if heard.place is None or item.first < heard.place], []
        place = next((place for place in reversed(range(len(shown))) if shown[place].asks), len(shown))
        since = fitted(shown[place:], most=shares.usable // 2, count=self.scope.count_tokens, marks=shares.marks)
        return shown[:place], [item for item in since if not item.asks]

    def _draft(self, said: Said, heard: Heard, since: Sequence[Shown], shares: Shares) -> Draft:
        terms = said.terms or Terms()
        own = offered(without=frozenset(tool.name for tool in terms.manner.tools))
        fits = described(Manner(tools=own), count=self.scope.count_tokens) * OWN_SHARE <= shares.usable
        with_own = self.tools is not None and isinstance(self.model, ToolModel) and fits
        return Draft(
            context="",
            view=(),
            text=heard.text,
            tokens=self.scope.count_tokens(heard.text),
            marks=shares.marks,
            instructions=terms.instructions,
            behind=messages(since),
            manner=replace(terms.manner, tools=(*terms.manner.tools, *own)) if with_own else terms.manner,
        )

    def _rounds(self, said: Said, speaking: Speaking, keeping: Keeping, *, room: int, heard: Trust | None) -> Rounds:
        return Rounds(
            speaking=speaking,
            gate=self.gate,
            clock=self.scope.clock,
            tools=self.tools and self.tools.of(said.session_id),
            theirs=said.terms.manner if said.terms else Manner(),
            room=room,
            keep=keeping.keep,
            heard=heard,
        )

    async def _unasked(self, said: Said, heard: Heard, why: str) -> _Prepared:
        """Without a model nobody reads the conversation, so its lines may be quoted like any other memory."""
        bundle = await self.contexts.build(self._request(said, heard, None))
        return _Prepared(given=Refreshed(bundle=bundle, how="built", because=UNREAD), degraded=why)

    async def _quotable(self, said: Said, heard: Heard, ready: _Prepared) -> Refreshed:
        """A context that goes with the conversation leaves out what stands there, and one that stood was made for an
        earlier input: what answers this one may not be in them."""
        if ready.draft is None:
            return ready.given
        return (await self._unasked(said, heard, "")).given

    def _request(self, said: Said, heard: Heard, in_view: InView | None) -> Request:
        return Request(
            agent_id=self.scope.agent_id,
            input=heard.text,
            itself=heard.memory_id,
            tokens=self.limits.context,
            adapt=True,
            frame=said.frame,
            session_id=said.session_id,
            in_view=in_view,
        )


def _replied(said: Said, heard: Heard, ready: _Prepared, text: str, by: AnsweredBy) -> Replied:
    sign = said.terms.sign(text, ready.calls) if said.terms and said.terms.sign else None
    return Replied(
        text=text,
        by=by,
        given=ready.given,
        asked=heard.place,
        heard=ready.heard,
        calls=ready.calls if by == "model" else (),
        sign=sign,
    )


def _finish(ready: _Prepared, degraded: str | None) -> Finish:
    if ready.replies and degraded is None:
        return ready.replies[-1].finish
    return "interrupted" if degraded and ready.replies else "stop"


def _spent(replies: Sequence[Reply]) -> tuple[int, int]:
    return sum(reply.input_tokens for reply in replies), sum(reply.output_tokens for reply in replies)
