"""Conversion of a chat request to a turn: whose memory it uses, which model answers, and what is stored."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, NamedTuple

from fastapi import Header, Request

from newton.agent.field_types import Strategy
from newton.agent.loop.completion import MODEL_SETTINGS
from newton.agent.loop.history_match import (
    EMPTY_MESSAGE_TEXT,
    HistoryMatch,
    IncomingMessage,
    fingerprint,
    fingerprint_messages,
    to_private_view,
)
from newton.agent.loop.prompt import MessageParts
from newton.agent.loop.turn_types import NO_USER_MESSAGE, CallerOptions, PrivateConversation, QuoteObstacle, TurnInput
from newton.agent.services.responses import PreviousResponse
from newton.content.ui_tasks import UiTask, find_ui_task
from newton.content.yaml_files import did_you_mean
from newton.errors import InputError, ModelNotFoundError, ProviderError
from newton.memory import agents as agent_store
from newton.memory.hygiene import clean_ref, is_blank
from newton.providers.chat import ChatModel, ToolCall
from newton.providers.context_windows import ContextWindow, find_window, get_known_window
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.auth import AuthenticatedCaller
from newton.runtime.api.chat_completions.request_models import (
    INSTRUCTION_ROLES,
    OWN_MODEL,
    ChatCompletionRequest,
    to_message_parts,
)
from newton.runtime.api.responses.request_models import ResponseRequest
from newton.runtime.wiring import AgentServices

SERVER_OWNER = "model-server"  # the owner of models that are not Newton's


class ModelChoice(NamedTuple):
    """The agent whose memory is used, and the model that answers; `model` is None if no model is configured."""

    newton: AgentServices
    model: ChatModel | None


async def choose_model(name: str, caller: AuthenticatedCaller, registry: AgentRegistry) -> ModelChoice:
    """Return the agent and the model that the field `model` of a request names.

    Only the operator's token can name another agent. Raises ModelNotFoundError for an unknown name.
    """
    newton, model_name = await choose_agent(name, caller, registry)
    if model_name is None:
        return ModelChoice(newton, newton.chat_model)
    try:
        return ModelChoice(newton, await newton.models.select(newton.chat_model, model_name))
    except ModelNotFoundError as error:
        raise _explain_unknown_model(error, model_name, newton) from None


def _explain_unknown_model(error: ModelNotFoundError, name: str, newton: AgentServices) -> ModelNotFoundError:
    """Return the error for a name that is no chat model, with a hint that also names `newton`, the default model."""
    if newton.scope.embedder and name == newton.scope.embedder.name:
        hint = f"Send it to `POST /v1/embeddings`, or use the model `{OWN_MODEL}`."
        return ModelNotFoundError(f"{name!r} is an embedding model, not a chat model.", hint=hint, param="model")
    near = "" if "Did you mean" in error.hint else did_you_mean(name, (OWN_MODEL, newton.settings.agent))
    own = "" if f"`{OWN_MODEL}`" in error.hint else f"The model `{OWN_MODEL}` is the default model of the agent."
    return ModelNotFoundError(error.what, hint=" ".join(filter(None, (near, error.hint, own))), param="model")


async def find_model_window(name: str, caller: AuthenticatedCaller) -> ContextWindow | None:
    """Return the context window of the model with a listed name; None if neither settings nor server state it.

    Only the server of the default model is asked.
    """
    newton = caller.token_agent
    if name in (OWN_MODEL, newton.settings.agent):
        window = await find_window(newton.chat_model)
    else:
        window = get_known_window(newton.models.get(name))
    return None if window.source == "default" else window


async def list_model_names(caller: AuthenticatedCaller, registry: AgentRegistry) -> dict[str, str]:
    """Return the values that a request may send as `model`, each with its owner for OpenAI's model list.

    They are `newton`, the agents that the token can use, the configured model servers, and their models.
    """
    own = caller.token_agent
    agents = await agent_store.list_names(own.scope.db) if caller.is_operator else [own.settings.agent]
    served = await _list_served(own)
    names = dict.fromkeys([OWN_MODEL, *agents], OWN_MODEL)
    return names | {name: SERVER_OWNER for name in served if name not in names}


async def _list_served(newton: AgentServices) -> list[str]:
    model = newton.chat_model
    if model is None:
        return []
    try:
        return await newton.models.list_names(model) or [model.name]
    except ProviderError:
        return [model.name]


async def choose_agent(
    name: str, caller: AuthenticatedCaller, registry: AgentRegistry
) -> tuple[AgentServices, str | None]:
    """Return the agent and the model that `name`, such as `AGENT/MODEL`, names; None if it names no model."""
    first, _, rest = name.partition("/")
    for agent, model_name in ((name, None), (first, rest or None)):
        if agent in (OWN_MODEL, caller.token_agent.settings.agent):
            return caller.newton, model_name
        if caller.is_operator and await agent_store.exists(caller.token_agent.scope.db, agent):
            return await caller.enter_project(await registry.get(agent), registry), model_name
    return caller.newton, name


ORIGIN = "http"
SESSION_PREFIX = "openai"  # prefix of default session names, before a part of the token's hash
FEEDBACK_TASK = "validation_feedback"  # uses memory: it is about the reply to a question of the user

RememberHeader = Annotated[
    Literal["yes", "no"] | None,
    Header(
        alias="X-Newton-Remember",
        description="With `no`, nothing of this request is stored. With `yes`, it is stored even if `store` is false or"
        " it has the shape of a request that a chat program sends by itself, such as for a title.",
    ),
]


StrategyHeader = Annotated[
    Strategy | None,
    Header(
        alias="X-Newton-Strategy",
        description="The compaction preset (default, long, conservative, none) or list of strategies for this request."
        " Default: the setting `compaction`.",
    ),
]


class TurnOptions(NamedTuple):
    """Options of a turn from the headers of a request: whether to store it, and how to shorten the conversation."""

    remember: Literal["yes", "no"] | None
    strategy: str | None


def get_turn_options(remember: RememberHeader = None, strategy: StrategyHeader = None) -> TurnOptions:
    """Return the options that the headers give."""
    return TurnOptions(remember, strategy)


class TurnTarget(NamedTuple):
    """The caller, with the memory to use, and the model that answers; `model` is None if none is configured.

    `strategy` is the compaction preset or list of strategies for the turn; None means the setting.
    """

    caller: AuthenticatedCaller
    model: ChatModel | None
    strategy: str | None = None

    @property
    def newton(self) -> AgentServices:
        return self.caller.newton


async def select_target(
    body: ChatCompletionRequest | ResponseRequest,
    caller: AuthenticatedCaller,
    request: Request,
    *,
    strategy: str | None = None,
) -> TurnTarget:
    """Return the memory and the model that a request selects by its user and its model name.

    Raises ModelNotFoundError for an unknown model, and the errors of `AuthenticatedCaller.for_user`.
    """
    registry: AgentRegistry = request.app.state.agents
    if user := body.user or body.safety_identifier:
        caller = await caller.for_user(user, registry)
    newton, model = await choose_model(body.model, caller, registry)
    request.state.agent_id = newton.scope.agent_id  # for the request log
    return TurnTarget(caller.for_agent(newton), model, strategy)


def find_task(body: ChatCompletionRequest, request: Request, remember: Literal["yes", "no"] | None) -> str | None:
    """Return what a request is for, such as a title, if a chat program sent it by itself; None for a person's request.

    Such a request is counted in the metrics. Raises InputError if there is no message to reply to.
    """
    texts = [message.text for message in body.messages if message.role not in INSTRUCTION_ROLES]
    if not texts and not body.instructions.strip():
        hint = "Send at least one message of the role user, or instructions."
        raise InputError("There is no message to reply to.", hint=hint, param="messages")
    if remember == "yes" or body.messages[-1].role != "user":
        return None
    tasks: Sequence[UiTask] = request.app.state.agents.ui_tasks
    found = find_ui_task(tasks, texts[-1], system=body.instructions)
    if found:
        request.app.state.metrics.ui_tasks.labels(found).inc()
    return found


def check_request(
    body: ChatCompletionRequest, target: TurnTarget, *, task: str | None, continues_response: bool = False
) -> None:
    """Raise InputError if the last message is empty, or if no model is configured and memories cannot be the reply.

    `task` is the purpose of a request that a chat program sent by itself. With `continues_response`, the request needs
    no message of the user, because memory is searched for that of an earlier request.
    """
    last = body.messages[-1]
    if last.role == "user" and is_blank(last.text):
        hint = "Send a text, an image or a file as `content`."
        place = f"messages[{len(body.messages) - 1}].content"
        raise InputError("The last message has no content.", hint=hint, param=place)
    if target.model is not None or not target.newton.settings.quote_without_model:
        return
    obstacle = _find_quote_obstacle(body, task=task)
    if obstacle is None and not continues_response and not any(one.role == "user" for one in body.messages):
        obstacle = NO_USER_MESSAGE
    if obstacle and obstacle.remedy:
        what = f"No model is set, and quotes of memory cannot replace this reply, because {obstacle.reason}."
        raise InputError(what, hint=f"{obstacle.remedy}, or set {MODEL_SETTINGS}.", param=obstacle.param)


def _find_quote_obstacle(body: ChatCompletionRequest, *, task: str | None) -> QuoteObstacle | None:
    if task:
        return QuoteObstacle(f"a chat program sent the request by itself ({task})")
    return body.quote_obstacle


def to_private_input(
    body: ChatCompletionRequest, newton: AgentServices, *, task: str | None, previous: PreviousResponse | None = None
) -> TurnInput:
    """Return the turn for a request of which nothing is stored. `previous` is the response that it continues.

    A request that a chat program sent by itself (`task`) uses no memory, but follows the identity and the constraints.
    The exception is feedback on a reply: it uses the memories for the user's question.
    """
    sent = body.incoming_messages
    questions = [_text_of(one) for one in sent if one.role == "user"]
    questions = questions or ([previous.last_input] if previous and previous.last_input else [])
    answered = questions[-2:-1] if task == FEEDBACK_TASK else () if task else questions[-1:]
    private = PrivateConversation(
        view=to_private_view(sent, scope=newton.scope),
        question=answered[0] if answered else None,
        session_id=previous.session_id if previous else None,
        last_position=previous.position if previous else None,
        ui_task=task,
    )
    parts_by_ref = _list_attachments(sent, fingerprint_messages(sent))
    last_user = _find_last_user(sent)
    return TurnInput(
        session_id=None,
        text=questions[-1] if questions else "",
        speaker=last_user.name if last_user else None,
        already_stored=True,
        private=private,
        caller_options=replace(
            _to_caller_options(body, parts_by_ref, last_user),
            quote_obstacle=_find_quote_obstacle(body, task=task),
        ),
    )


def mark_feedback(history: HistoryMatch, tasks: Sequence[UiTask]) -> HistoryMatch:
    """Return the history with requests of chat programs among its new messages marked, so that they stay no memories.

    `tasks` are the patterns of such requests. The last message is not marked.
    """
    *before, last = history.new_messages or [None]
    marked = [
        replace(one, is_notice=True) if one and one.role == "user" and find_ui_task(tasks, one.content) else one
        for one in before
    ]
    return replace(history, new_messages=[one for one in (*marked, last) if one])


def to_turn_input(
    body: ChatCompletionRequest, history: HistoryMatch, newton: AgentServices, *, is_whole: bool = True
) -> TurnInput:
    """Return the turn that answers the last user message and what follows it: tool results, or the start of a reply.

    `history` says which messages of the request are new, and in which session they belong. With `is_whole`, the request
    has the whole conversation.
    """
    sent = body.incoming_messages
    new = list(history.new_messages)
    ends_with_user = bool(new) and sent[-1].role == "user"
    last_user = _find_last_user(sent, default=history.last_input)
    parts_by_ref = _list_attachments(sent, history.fingerprints)
    return TurnInput(
        session_id=history.session_id,
        text=_text_of(last_user),
        speaker=last_user.name if last_user else None,
        ref=history.fingerprint if sent and sent[-1].role == "user" else None,
        earlier=new[:-1] if ends_with_user else new,
        already_stored=not ends_with_user,
        sent=partial(to_private_view, sent, scope=newton.scope) if is_whole else None,
        caller_options=replace(
            _to_caller_options(body, parts_by_ref, last_user), fingerprint=partial(sign_reply, history)
        ),
    )


def _find_last_user(sent: Sequence[IncomingMessage], *, default: str = "") -> IncomingMessage | None:
    given = IncomingMessage("user", default) if default else None
    return next((one for one in reversed(sent) if one.role == "user"), given)


def _text_of(message: IncomingMessage | None) -> str:
    """Return the text of a user, as it is stored; an empty text if there is no message."""
    return (EMPTY_MESSAGE_TEXT if is_blank(message.text) else message.text) if message else ""


def _list_attachments(sent: Sequence[IncomingMessage], refs: Sequence[str]) -> dict[str, MessageParts]:
    found = {ref: to_message_parts(one) for ref, one in zip(refs, sent, strict=True)}
    return {ref: parts for ref, parts in found.items() if parts}


def _to_caller_options(
    body: ChatCompletionRequest, attachments: Mapping[str, MessageParts], last_user: IncomingMessage | None
) -> CallerOptions:
    return CallerOptions(
        request_options=body.request_options,
        instructions=body.instructions,
        max_reply_tokens=body.max_reply_tokens,
        offers_own_tools=body.wants_plain_text,
        quote_obstacle=body.quote_obstacle,
        attachments=attachments,
        input_parts=to_message_parts(last_user) if last_user else None,
    )


def sign_reply(history: HistoryMatch, reply: str, calls: Sequence[ToolCall]) -> str:
    """Return the fingerprint (a hash that includes the conversation so far) of the reply to the last message."""
    return fingerprint(history.fingerprint, IncomingMessage("assistant", reply, tuple(calls)))


def is_remembered(body: ChatCompletionRequest | ResponseRequest, remember: Literal["yes", "no"] | None) -> bool:
    """Return whether a request is to be stored: by the header X-Newton-Remember, or else by the field `store`."""
    return remember == "yes" if remember else body.store is not False


async def match_history(
    body: ChatCompletionRequest, target: TurnTarget, request: Request, *, session: str | None
) -> HistoryMatch:
    """Return the session that the conversation of a request continues, and which of its messages are new.

    `session` is the name that the caller gave; None searches under the default name of the token and the user.
    """
    name = clean_ref(session, what="session") if session else default_session_name(request, target.caller.user)
    matcher = target.newton.history_matcher(ORIGIN)
    return await matcher.match(body.incoming_messages, session_ref=name, explicit_ref=session is not None)


def default_session_name(request: Request, user: str | None) -> str:
    """Return the session name for requests that name none. It differs by token and user."""
    owner = request.headers.get("Authorization", "") + (f"\0{user}" if user else "")
    return f"{SESSION_PREFIX}-{hashlib.sha256(owner.encode()).hexdigest()[:12]}"
