"""Preparation of a turn: select its conversation, build its context, and assemble the request to the model."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from newton.agent.actions.action_runner import ActionRunner
from newton.agent.actions.action_service import ActionService, omit_tools
from newton.agent.actions.external_tools import ExternalTool
from newton.agent.actions.outbound_guard import OutboundGuard, create_guard
from newton.agent.compaction.service import CompactionService, use_strategy
from newton.agent.llm.usage import ModelUsage
from newton.agent.loop.action_gate import ActionGate, CensorCheck
from newton.agent.loop.chat_tools.tool_offer import (
    SessionContents,
    add_own_tools,
    find_contents,
    omit_unneeded,
)
from newton.agent.loop.completion import ChatService, PromptBudget, TokenLimits
from newton.agent.loop.dialogue_selection import select_dialogue, select_for_caller
from newton.agent.loop.fallback import asks_nothing
from newton.agent.loop.prompt import (
    ModelRequest,
    PromptBuilder,
    add_attachment_tokens,
    find_sent_messages,
    to_prompt_messages,
)
from newton.agent.loop.tool_loop import ToolLoop, fit_tool_results
from newton.agent.loop.tools import AgentToolset
from newton.agent.loop.turn_recorder import RecordedInput
from newton.agent.loop.turn_state import AssembledRequest, PreparedTurn, RunningTurn, find_place
from newton.agent.loop.turn_status import RETRIEVING, ProgressCallback
from newton.agent.loop.turn_types import CENSOR_MESSAGE, CallerOptions, TurnInput
from newton.agent.prompt_records.spans import PromptMessage
from newton.agent.prompting.memory_delta import read_section
from newton.agent.prompting.session_prompt import NO_SESSION_PROMPT, SessionPrompt, SessionPromptBuilder
from newton.agent.prompting.system_prompt import TEMPLATE
from newton.agent.scope import AgentScope
from newton.cognition.assembly.assembler import EPISODE_LAYER
from newton.cognition.pipeline import ContextBuilder
from newton.cognition.request import ContextBuildRequest, SentMessages
from newton.cognition.session_context.service import SessionContext, SessionContextService
from newton.concurrency import task_group
from newton.dialogue import log
from newton.dialogue.compaction.progress_events import ignore_progress
from newton.dialogue.compaction.view_budget import fit_to_budget
from newton.dialogue.view import ViewMessage
from newton.fault_isolation import run_part
from newton.memory.memory import TRUST_TIERS, TokenCounter, Trust, lowest_known_trust
from newton.providers.chat import ChatModel, RequestOptions, ToolModel

WORK_SHARE = 0.4  # of a prompt that is prepared anew, for the tool calls and results of the turn
EXTERNAL_TOOLS_DIVISOR = 4  # tools of servers are offered as far as they fit into this part of the window
PRIVATE_REASON = "the turn is private, so its context is built for this turn only and not stored"
NO_MODEL_REASON = "no model was called, so all memories were searched for some to quote"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPreparer:
    """Builds the context and the request to the model for turns of one agent.

    Without `tools`, the model is not offered Newton's tools. `actions` calls the tools of servers. `on_event` receives
    progress events, such as that memory is searched.
    """

    scope: AgentScope
    contexts: ContextBuilder
    compaction: CompactionService
    gate: ActionGate
    model: ChatModel | None
    limits: TokenLimits
    tools: AgentToolset | None = None
    actions: ActionService | None = None
    on_event: ProgressCallback = ignore_progress

    async def prepare(self, turn: RunningTurn, check: CensorCheck) -> PreparedTurn:
        """Build the context and the request to the model; only the context if a censor or a limit forbids a call."""
        if check.blocks:
            return await self._prepare_without_model(turn, CENSOR_MESSAGE)
        chat, usage = await self.create_chat(turn.input).fit_to_model(), turn.call_limits.usage
        session_id = turn.input.session_id
        if reason := chat.find_refusal_reason(self.scope.count_tokens(turn.recorded.text), usage):
            return await self._prepare_without_model(turn, reason)
        self.on_event(RETRIEVING)
        ready = await self._assemble(turn, chat, usage)
        if reason := chat.find_refusal_reason(_estimate_model_tokens(ready.request, ready.budget), usage):
            return await self._prepare_without_model(turn, reason)
        tool_loop = ToolLoop(
            chat=replace(chat, calibration=ready.budget.calibration),
            gate=self.gate,
            tools=self.tools.for_session(session_id, ready.position) if self.tools and session_id else None,
            prompt=ready.prompt,
            request=ready.request,
            caller_options=turn.options.request_options,
            max_tokens=ready.budget.usable,
            call_limits=turn.call_limits,
            append_lines=turn.recorder.append,
            record_result=turn.recorder.record_result,
            actions=ready.actions,
            outbound=ready.outbound,
            min_trust=ready.min_trust,
            exempt_censors=check.explained,
        )
        prepared = PreparedTurn(context=ready.context, tool_loop=tool_loop, view=ready.view, budget=ready.budget)
        tool_loop.refit = partial(self._refit, turn, prepared)
        return prepared

    async def _refit(self, turn: RunningTurn, prepared: PreparedTurn, loop: ToolLoop, usage: ModelUsage) -> None:
        """Prepare a turn anew whose prompt the model refused as too long, within the smaller window of `loop.chat`.

        Raises ContextWindowError if the caller's instructions and tools do not fit into it.
        """
        options = turn.options
        loop.chat.check_prompt(
            turn.recorded.text, usage, instructions=options.instructions, options=options.request_options
        )
        ready = await self._assemble(turn, loop.chat, usage, work=loop.work)
        loop.adopt(ready.prompt, max_tokens=ready.budget.usable)
        if loop.actions and ready.actions:
            ready.actions.last_failed = loop.actions.last_failed
        ready.outbound.notes = loop.outbound.notes
        loop.actions, loop.outbound = ready.actions, ready.outbound
        loop.chat = replace(loop.chat, calibration=ready.budget.calibration)
        loop.min_trust = lowest_known_trust((loop.min_trust, ready.min_trust))
        prepared.context, prepared.view, prepared.budget = ready.context, ready.view, ready.budget

    async def _assemble(
        self, turn: RunningTurn, chat: ChatService, usage: ModelUsage, work: tuple[PromptMessage, ...] = ()
    ) -> AssembledRequest:
        """Select the conversation and the tools, build the context, and assemble the request.

        `work` are the calls that Newton ran in this turn, and their results.
        """
        count_tokens, budget = self.scope.count_tokens, chat.build_budget(usage)
        external = await self._list_external_tools(turn, budget)
        prompts = SessionPromptBuilder.create(self.scope)
        rules = await _build_rules(turn, prompts, budget)
        prompt = self._build_prompt(turn, budget, external, TEMPLATE if rules is None else rules.system)
        budget = budget.leave_room(prompt, count_tokens=count_tokens)
        full_view = await self._load_view(turn, max_tokens=budget.conversation)
        dialogue = _filter_roles(turn, full_view, count_tokens, keeps_work=bool(prompt.options.own_tools))
        before, after_input = self._split_view(turn, dialogue, budget)
        work = fit_tool_results(work, max_tokens=int(budget.usable * WORK_SHARE), count_tokens=count_tokens)
        prompt = replace(prompt, tool_messages=(*to_prompt_messages(after_input), *work))
        conversation = budget.fit_conversation(
            before, prompt.text_tokens + prompt.overhead_tokens(count_tokens=count_tokens), count_tokens=count_tokens
        )
        messages = [*conversation, *after_input]
        sent = self._find_sent(turn, messages, full_view)
        async with task_group() as tasks:
            finding_quarantined = tasks.create_task(self._find_quarantined(messages, turn))
            context = await self._build_context(turn, prompt, budget, sent)
        outbound = create_guard(self.scope, turn.input.session_id, context, approve=turn.approve)
        actions = self._open_actions(turn, external, context, outbound)
        place = find_place(turn, full_view)
        added = rules or await prompts.build(place, context, view=full_view, conversation=conversation)
        prompt = replace(
            prompt,
            view=conversation,
            system=added.system,
            memory=added.memory,
            options=await self._select_tools(turn, prompt.options, external, context),
            origin=added.to_origin(place, full_view, dialogue, context),
        )
        return AssembledRequest(
            prompt=prompt,
            request=prompt.build(budget.usable, count_tokens=count_tokens),
            budget=budget,
            view=full_view,
            context=context,
            actions=actions,
            outbound=outbound,
            position=place.position,
            min_trust=lowest_known_trust((*finding_quarantined.result(), added.min_trust)),
        )

    async def _select_tools(
        self,
        turn: RunningTurn,
        options: RequestOptions,
        external: Sequence[ExternalTool],
        context: SessionContext | None,
    ) -> RequestOptions:
        """Return the options with the tools that the session has been offered or now needs: they only become more."""
        finding = find_contents(self.scope, turn.input.session_id if options.own_tools else None, context)
        contents = await run_part("tools", finding, default=SessionContents(), missing=turn.missing)
        offered = self.actions.find_offered(external, contents.frames or (turn.input.frame,)) if self.actions else ()
        return omit_unneeded(omit_tools(options, external, offered), contents._replace(can_act=bool(offered)))

    def create_chat(self, turn_input: TurnInput) -> ChatService:
        """Return the service that calls the model for a turn."""
        options = turn_input.caller_options or CallerOptions()
        return ChatService(
            scope=self.scope,
            model=self.model,
            limits=replace(self.limits, reply=options.max_reply_tokens or self.limits.reply),
            purpose=turn_input.private.purpose if turn_input.private else "turn",
            on_event=self.on_event,
        )

    async def _load_view(self, turn: RunningTurn, *, max_tokens: int) -> Sequence[ViewMessage]:
        """Return the conversation of the turn; for a private turn, the stored messages of its session come first."""
        compaction = use_strategy(self.compaction, turn.input.strategy)
        session_id, private = turn.input.session_id, turn.private
        if private is None:
            assert session_id, "only a private turn has no session"
            loading = compaction.load_view(session_id, max_tokens=max_tokens)
            view = await run_part("compaction", loading, default=None, missing=turn.missing)
            return await _load_uncompacted(self.scope, session_id) if view is None else view
        if private.session_id is None:
            return private.view
        loaded = await compaction.preview(private.session_id, max_tokens=max_tokens)
        stored = [item for item in loaded if private.last_position is None or item.first <= private.last_position]
        first = max((item.last for item in stored), default=-1) + 1
        return [*stored, *(item._replace(first=first + item.first, last=first + item.last) for item in private.view)]

    def _find_sent(
        self, turn: RunningTurn, messages: Sequence[ViewMessage], full_view: Sequence[ViewMessage]
    ) -> SentMessages | None:
        """Return which messages of the session are sent with the prompt; None in a private turn."""
        if (session_id := turn.input.session_id) is None:
            return None
        view = full_view if turn.input.already_stored else _select_before_input(full_view, turn.recorded)
        end = max((item.last for item in view), default=-1)
        sent = find_sent_messages(session_id, messages, end=end)
        quoted = read_section((item.memory.text for item in messages if item.memory), EPISODE_LAYER)
        return replace(
            sent, inherited_ranges=tuple(turn.recorded.ancestors), quoted_tokens=self.scope.count_tokens(quoted)
        )

    async def _find_quarantined(self, messages: Sequence[ViewMessage], turn: RunningTurn) -> Collection[Trust]:
        """Return the trust tiers of quarantined messages; the lowest one if that fails, as a reply may repeat any."""
        if turn.input.session_id is None or not messages:
            return ()
        finding = _read_quarantined(self.scope, messages, turn.input.session_id)
        return await run_part("trust of messages", finding, default=TRUST_TIERS[-1:], missing=turn.missing)

    def _split_view(
        self, turn: RunningTurn, dialogue: Sequence[ViewMessage], budget: PromptBudget
    ) -> tuple[list[ViewMessage], list[ViewMessage]]:
        """Split the conversation into the messages before the input and those after it.

        The messages after it, such as tool results, are shortened to half the window.
        """
        dialogue = add_attachment_tokens(dialogue, turn.options.attachments)
        if not turn.input.already_stored:
            return _select_before_input(dialogue, turn.recorded), []
        index = next((index for index in reversed(range(len(dialogue))) if dialogue[index].is_input), len(dialogue))
        after = fit_to_budget(
            dialogue[index:],
            max_tokens=budget.usable // 2,
            count_tokens=self.scope.count_tokens,
            overhead=budget.overhead_per_message,
        )
        return dialogue[:index], [item for item in after if not item.is_input]

    def _build_prompt(
        self,
        turn: RunningTurn,
        budget: PromptBudget,
        external: Sequence[ExternalTool],
        system: str,
    ) -> PromptBuilder:
        """Build a prompt without context and conversation.

        Newton's tools are offered if the model can call them, as many as fit.
        """
        options, count_tokens = turn.options.request_options, self.scope.count_tokens
        if self.tools and turn.options.offers_own_tools and isinstance(self.model, ToolModel):
            options = add_own_tools(options, external, max_tokens=budget.usable, count_tokens=count_tokens)
        return PromptBuilder(
            view=(),
            text=turn.recorded.text,
            text_tokens=count_tokens(turn.recorded.text),
            overhead_per_message=budget.overhead_per_message,
            instructions=turn.options.instructions,
            options=options,
            attachments=turn.options.attachments,
            input_parts=turn.options.input_parts,
            input_name=turn.input.speaker,
            system=system,
        )

    async def _list_external_tools(self, turn: RunningTurn, budget: PromptBudget) -> Sequence[ExternalTool]:
        """Return the tools of servers to offer; none if the model cannot call tools or the turn is private."""
        is_usable = self.tools and turn.options.offers_own_tools and isinstance(self.model, ToolModel)
        if self.actions is None or not is_usable or (session_id := turn.input.session_id) is None:
            return ()
        taken, room = {one.name for one in turn.options.request_options.tools}, budget.usable // EXTERNAL_TOOLS_DIVISOR
        selecting = self.actions.select_tools(frozenset(taken), session_id=session_id, max_tokens=room)
        return await run_part("tools of servers", selecting, default=(), missing=turn.missing)

    def _open_actions(
        self,
        turn: RunningTurn,
        external: Sequence[ExternalTool],
        context: SessionContext | None,
        guard: OutboundGuard,
    ) -> ActionRunner | None:
        """Return what calls the tools of servers that the frame of the input allows; None if there are none."""
        frame = context.bundle.frame_choice.frame if context else turn.input.frame
        if self.actions is None or turn.input.session_id is None:
            return None
        return self.actions.open(external, session_id=turn.input.session_id, frame=frame, guard=guard)

    async def _build_context(
        self, turn: RunningTurn, prompt: PromptBuilder, budget: PromptBudget, sent: SentMessages | None
    ) -> SessionContext | None:
        """Return a context no longer than the space that the rest of the prompt leaves; None if memory is not used."""
        if turn.question is None:
            return None
        required = prompt.required_tokens(budget.usable, count_tokens=self.scope.count_tokens)
        request = self._context_request(turn, tokens=max(min(budget.context, budget.usable - required), 1), sent=sent)
        return await run_part("context", self._find_context(turn, request), default=None, missing=turn.missing)

    async def _find_context(self, turn: RunningTurn, request: ContextBuildRequest) -> SessionContext:
        if turn.private:
            return await _build_apart(self.contexts, request, PRIVATE_REASON)
        return await SessionContextService(builder=self.contexts).get_for_turn(request)

    async def _prepare_without_model(self, turn: RunningTurn, reason: str) -> PreparedTurn:
        return PreparedTurn(context=await self.build_full_context(turn), degraded=reason)

    async def build_full_context(self, turn: RunningTurn) -> SessionContext | None:
        """Return a context to quote, with messages of the conversation; the last one for an input that asks nothing."""
        if turn.question is None:
            return None
        request = self._context_request(turn, tokens=self.limits.context)
        can_stand = self.model is None and turn.private is None
        return await _find_quotable(self.contexts, request, can_stand=can_stand)

    def _context_request(
        self, turn: RunningTurn, *, tokens: int, sent: SentMessages | None = None
    ) -> ContextBuildRequest:
        return ContextBuildRequest(
            agent_id=self.scope.agent_id,
            input=turn.recorded.text if turn.question is None else turn.question,
            input_memory_id=turn.recorded.memory_id,
            tokens=tokens,
            adaptive_budget=True,
            frame=turn.input.frame,
            session_id=turn.input.session_id,
            sent_messages=sent,
            is_private=turn.private is not None,
            deadline=turn.input.deadline,
        )


async def _build_apart(contexts: ContextBuilder, request: ContextBuildRequest, reason: str) -> SessionContext:
    """Return a context that the next turns of the session do not reuse."""
    return SessionContext(bundle=await contexts.build(request), method="built", reason=reason)


async def _find_quotable(contexts: ContextBuilder, request: ContextBuildRequest, *, can_stand: bool) -> SessionContext:
    if not can_stand:
        return await _build_apart(contexts, request, NO_MODEL_REASON)
    service, tells = SessionContextService(builder=contexts), asks_nothing(request.input)
    return await service.get_without_model(request, tells=tells, reason=NO_MODEL_REASON)


async def _build_rules(turn: RunningTurn, prompts: SessionPromptBuilder, budget: PromptBudget) -> SessionPrompt | None:
    """Return the system message of a turn that uses no memory: its rules stay. None if it uses memory."""
    if turn.question is not None:
        return None
    building = prompts.build_rules(turn.call_limits.rules, max_tokens=budget.context)
    return await run_part("identity and constraints", building, default=NO_SESSION_PROMPT, missing=turn.missing)


def _estimate_model_tokens(request: ModelRequest, budget: PromptBudget) -> int:
    return budget.calibration.to_model_tokens(request.tokens, len(request.messages))


def _select_before_input(view: Sequence[ViewMessage], recorded: RecordedInput) -> list[ViewMessage]:
    return [item for item in view if recorded.position is None or item.first < recorded.position]


def _filter_roles(
    turn: RunningTurn, view: Sequence[ViewMessage], count_tokens: TokenCounter, *, keeps_work: bool
) -> list[ViewMessage]:
    """Return the messages that this kind of turn sends: an API caller gets its tool calls and results as well.

    Without tools of Newton, a request has no calls of such tools.
    """
    if turn.input.caller_options:
        return select_for_caller(view, keeps_work=keeps_work, count_tokens=count_tokens)
    return select_dialogue(view, keeps_work=keeps_work, count_tokens=count_tokens)


async def _load_uncompacted(scope: AgentScope, session_id: UUID) -> Sequence[ViewMessage]:
    async with scope.transaction() as tx:
        return (await log.load_view(tx, agent_id=scope.agent_id, session_id=session_id)).view


async def _read_quarantined(scope: AgentScope, messages: Sequence[ViewMessage], session_id: UUID) -> Collection[Trust]:
    async with scope.transaction() as tx:
        return await log.find_quarantined_trust(tx, messages, agent_id=scope.agent_id, session_id=session_id)
