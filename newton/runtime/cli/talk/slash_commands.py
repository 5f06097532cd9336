"""Slash commands of the chat: those that act on the conversation, and the dispatch of a line to its command."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from newton.errors import InputError
from newton.memory.hygiene import clean_ref
from newton.operations.agent.identity_records import IdentityLine
from newton.operations.contexts.bundle_text import format_explanation
from newton.operations.contexts.context_text import format_frame, format_frame_features
from newton.operations.conversations.task_records import format_tasks
from newton.operations.declaration import Operation
from newton.operations.memories.undone_changes import UndoneChange
from newton.operations.runner import TOKEN, format_result, list_notices
from newton.operations.text_format import format_replaced
from newton.runtime.chat_backend.protocol import ChatBackend, run_named
from newton.runtime.chat_backend.view_models import ProposalView, RuleChangeView
from newton.runtime.cli import formatting
from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.options import check_strategy
from newton.runtime.cli.printing import fit_lines, say
from newton.runtime.cli.status_line import print_status
from newton.runtime.cli.talk.chat_conversation import ChatConversation
from newton.runtime.cli.talk.operation_lines import find_command, format_help, parse_arguments
from newton.runtime.hint_names import rename_commands

if TYPE_CHECKING:
    from newton.heart.identity.tenets import IdentityPart

HELP_TEXT = """\
/context          show the context of the last answer, by layer, with scores
/why NUMBER       explain an item of /context; /why TEXT finds a memory by its text, selected or not
/frame            show the frame of the last answer, its confidence and the reason
/frame NAME       use this frame for the next inputs; /frame auto selects one for each input again
/strategy         show how long conversations are compacted; /strategy NAME uses a preset or list of strategies for
                  the next inputs, /strategy default the setting again
/model            list the chat models; /model NAME uses this one for the next inputs
/undo             take back what the last input changed: retract its new facts, and let what it ended
                  and the rules before it hold again
/private          store nothing of the next inputs and answers; /private again ends it
/branch NEW [AT]  continue in a new session from here, or from the message AT
/switch NAME      continue in another session, or create it; /switch alone shows the current one
/tasks ACTION     change the tasks: push GOAL, pop RESULT, block REASON, resume NUMBER, fail REASON;
                  /tasks push GOAL | STEP | STEP makes a plan
/yes, /no [N]     accept or reject a proposed standing instruction; number N of several
/help             show this help
/quit             leave (so does Ctrl-D); Ctrl-C stops an answer and stores the part received so far

@PATH             in a message: a text or PDF becomes a document of the session, an image goes to the model;
                  @"a path with spaces"
Alt-Enter         begins a new line; a pasted text is one message; Ctrl-R searches earlier inputs"""

HOLDS_AGAIN = frozenset({"replaced", "ended", "retracted"})  # the effects whose facts hold again when they are undone
AUTO_FRAME = "auto"
DEFAULT_STRATEGY = "default"
# The actions of /tasks, with the parameter of the operation that is the text after it.
TASK_ACTIONS = {"push": "goal", "pop": "result", "block": "reason", "resume": "number", "fail": "reason"}


def tell(text: str) -> None:
    """Print a text, in a terminal with its lines broken between words."""
    say(fit_lines(text, current_terminal().columns()))


async def run_slash_command(conversation: ChatConversation, text: str) -> None:
    """Run the command on a line that begins with "/", and print its result. Raises InputError for an unknown name."""
    name, _, rest = text.partition(" ")
    if command := BUILTIN_COMMANDS.get(name):
        if pending := command(conversation, rest.strip()):
            await pending
    else:
        found = find_command(name, BUILTIN_COMMANDS)
        arguments = parse_arguments(found, rest.strip(), session=conversation.name)
        print_status(f"{name} …")
        try:
            shown = await _call(conversation.backend, found.operation, arguments)
        finally:
            print_status("")
        tell(shown)


async def _call(backend: ChatBackend, operation: Operation, arguments: Mapping[str, object]) -> str:
    """Run an operation; return its result as text."""
    result = await backend.run_operation(operation, arguments)
    name_commands, columns = partial(rename_commands, interface="chat"), current_terminal().columns()
    text = format_result(operation, result, name_commands, columns=columns)
    text = "\n".join([text, *list_notices(operation, result, name_commands)])
    if token := getattr(result, TOKEN, None):
        return (
            f"{text}\nNothing is changed yet. To go ahead, send the same with --token {token} before the other words."
        )
    following = getattr(result, "next", None)
    return f"{text}\nMore: the same command with --cursor {following}" if following else text


def print_help(conversation: ChatConversation, _: str) -> None:
    """Print the help of all slash commands."""
    tell(f"{HELP_TEXT}\n\n{format_help(BUILTIN_COMMANDS)}")


def print_context(conversation: ChatConversation, _: str) -> None:
    """Print the context of the last answer, layer by layer."""
    turn, context = conversation.require_last_turn(), conversation.require_last_context()
    tell(f"{formatting.format_bundle(context)}\n\n{formatting.format_refresh(turn)}")
    if context.has_nothing_relevant:
        formatting.print_notice("(No memory was relevant; the model got only the messages of this conversation.)")


async def explain_item(conversation: ChatConversation, item: str) -> None:
    """Print why a memory is in the context of the last answer or not; `item` is its number there or a part of its text.

    If `item` is empty, explain the whole context. Raises InputError for a private answer, whose context is not stored.
    """
    last_turn = conversation.require_last_turn()
    if not last_turn.remembered:
        what = "The items of a private answer's context cannot be explained, because the context is not stored."
        raise InputError(what, hint="/context lists the items of the context of the last answer.")
    bundle_id = str(conversation.require_last_context().bundle_id)
    tell(format_explanation(await run_named(conversation.backend, "why", bundle_id=bundle_id, item=item or None)))


async def set_frame(conversation: ChatConversation, name: str) -> None:
    """Use a frame (kind of input) for the next inputs, and print it. "auto" selects one for each input.

    Without a name, also print the frame of the last answer and why it was selected.
    """
    if name:
        is_auto = name == AUTO_FRAME
        conversation.frame = None if is_auto else (await run_named(conversation.backend, "frame", name=name)).name
    tell(f"Frame: {conversation.frame or 'selected for each input'}.")
    if not name and (context := conversation.last_context):
        frame = context.frame
        reason = f"Last answer: {format_frame(frame)}; reason: {frame['reason']}."
        tell("\n".join([reason, *format_frame_features(frame)]))


def set_strategy(conversation: ChatConversation, strategy: str) -> None:
    """Use a way to shorten the conversation (a compaction preset or list of strategies) for the next inputs; print it.

    Without one, only print the current one.
    """
    if strategy:
        conversation.strategy = None if strategy == DEFAULT_STRATEGY else check_strategy(strategy)
    tell(f"Compaction: {conversation.strategy or 'as set by NEWTON_COMPACTION'}.")


async def describe_model(backend: ChatBackend) -> str:
    """Return the name of the model that answers, with its context window if that is known."""
    if backend.model is None:
        return "none; answers only quote memory"
    window = await backend.find_window()
    return f"{backend.model} (window: {window})" if window else backend.model


async def select_model(conversation: ChatConversation, name: str) -> None:
    """Use a chat model for the next inputs; without a name, print the current one and those available."""
    if name:
        await conversation.backend.select_model(name)
    tell(f"Model: {await describe_model(conversation.backend)}.")
    if not name and (names := await conversation.backend.list_models()):
        tell(f"Available models: {', '.join(names)}.")


def toggle_privacy(conversation: ChatConversation, _: str) -> None:
    """Switch a private conversation, of which nothing is stored, on or off."""
    if conversation.private_messages is None:
        conversation.private_messages = []
        tell("Private: nothing of the next inputs and answers is stored. Memory is still used. /private ends it.")
    else:
        conversation.private_messages = None
        tell("Inputs and answers are stored again. The model is not sent what was private.")


async def undo(conversation: ChatConversation, _: str) -> None:
    """Undo the changes of facts and rules since the last input, retract the facts stored since then, and print both.

    Raises InputError before the first input.
    """
    if conversation.turn_began_at is None:
        raise InputError("Nothing was learnt in this conversation yet.", hint="Send a message first.")
    since = conversation.turn_began_at.isoformat()
    undone = (await run_named(conversation.backend, "undo", since=since)).items
    filters = {"kinds": ["fact"], "states": ["current", "quarantined"], "created_since": since, "limit": 50}
    items = (await run_named(conversation.backend, "list_memories", **filters)).items
    for one in items:
        await run_named(conversation.backend, "retract", memory_id=str(one.memory_id))
        tell(f"Retracted: {one.text}")
    for one in undone:
        if one.effect in HOLDS_AGAIN:
            tell(f"Holds again: {one.text}")
        elif one.effect == "hidden" and one.kind == "exchange":
            tell(f"In memory again: {one.text}")
    rules = [*conversation.rules, *(change for one in undone if (change := _to_rule_change(one)))]
    conversation.rules = ()
    for change in reversed(rules):
        await _undo_rule(conversation.backend, change)
        tell(f"Undone: {formatting.format_rule_change(change)}")
    if not (items or rules or undone):
        tell("Nothing was learnt from the last input.")


def _to_rule_change(undone: UndoneChange) -> RuleChangeView | None:
    """Return the change of a rule that is to be undone; None for a change of a fact."""
    if undone.effect not in ("ruled", "lifted"):
        return None
    section, is_new = cast("IdentityPart", undone.kind), undone.effect == "ruled"
    line = IdentityLine(line_id=undone.target_id, section=section, text=undone.text)
    return RuleChangeView(added=line if is_new else None, removed=[] if is_new else [line], version=-1)


async def _undo_rule(backend: ChatBackend, change: RuleChangeView) -> None:
    """Undo a change of the user's rules: put those that it lifted in force again, and remove the new one."""
    if change.can_roll_back((await run_named(backend, "identity")).version):
        await run_named(backend, "roll_back_identity", version=change.version)
        return
    for line in change.removed:
        await run_named(backend, "add_line", section=line.section, text=line.text, allow_conflict=True)
    if change.added:
        await run_named(backend, "remove_line", line_id=str(change.added.line_id))


async def run_task(conversation: ChatConversation, text: str) -> None:
    """Change the tasks of this session by `text` (an action, such as push, and its argument), and print all of them."""
    action, _, rest = text.partition(" ")
    await run_named(conversation.backend, "create_session", session=conversation.name)
    if action:
        if action not in TASK_ACTIONS:
            hint = f"Use /tasks {', '.join(TASK_ACTIONS)}, or nothing after it."
            raise InputError(f"Unknown command /tasks {action}.", hint=hint)
        first, *steps = map(str.strip, rest.split("|")) if action == "push" else (rest,)
        given: dict[str, object] = {TASK_ACTIONS[action]: first, **({"steps": steps} if steps else {})}
        await run_named(conversation.backend, f"{action}_task", session=conversation.name, **given)
    tell(format_tasks(await run_named(conversation.backend, "tasks", session=conversation.name)))


async def create_branch(conversation: ChatConversation, text: str) -> None:
    """Create a session from a position of this one, and continue in it: "NAME [POSITION]"."""
    name, _, at = text.partition(" ")
    await run_named(conversation.backend, "create_session", session=conversation.name)
    given = {"branch": clean_ref(name, what="session"), **({"from_position": at.strip()} if at.strip() else {})}
    await run_named(conversation.backend, "create_branch", session=conversation.name, **given)
    await switch_session(conversation, name)


async def switch_session(conversation: ChatConversation, name: str) -> None:
    """Close the current session and continue in the session `name`; print the name of the current session.

    Without a name, only print the current one.
    """
    previous = conversation.name
    exists = not name or await conversation.has_session(clean_ref(name, what="session"))
    if name:
        await conversation.close_session()
        conversation.name, conversation.last_turn = name, None
    note = "" if exists else f" It is new; /switch {previous} returns to the previous one."
    tell(f"Session {conversation.name}.{note}")


async def accept_proposals(conversation: ChatConversation, number: str) -> None:
    """Add a proposed line, by its number, or all proposed lines to the identity."""
    for proposal in await _select_proposals(conversation, number):
        accepted = await run_named(conversation.backend, "accept_proposal", line_id=str(proposal.line_id))
        _drop_proposal(conversation, proposal)
        replaced = [one.text for one in proposal.conflicts_with if one.line_id in accepted.replaced]
        text = f"{proposal.text}{format_replaced(replaced)}"
        tell(f"Added: {text} (`newton identity` shows it; `newton identity remove` removes it)")


async def reject_proposals(conversation: ChatConversation, number: str) -> None:
    """Reject a proposed line, by its number, or all proposed lines."""
    for proposal in await _select_proposals(conversation, number):
        await run_named(conversation.backend, "reject_proposal", line_id=str(proposal.line_id))
        _drop_proposal(conversation, proposal)
        tell(f"Rejected: {proposal.text}")


async def _select_proposals(conversation: ChatConversation, number: str) -> Sequence[ProposalView]:
    """Return the proposed identity line with a number from 1, or all for an empty `number`. Raises InputError."""
    if not conversation.proposals:
        pending = formatting.format_pending_proposals((await run_named(conversation.backend, "proposals")).items)
        raise InputError("There is no proposal in this conversation.", hint=pending)
    if not number:
        return conversation.proposals
    if number.isdigit() and 1 <= int(number) <= len(conversation.proposals):
        return [conversation.proposals[int(number) - 1]]
    count = len(conversation.proposals)
    hint = f"Give a number from 1 to {count}; `newton identity proposals` lists earlier proposals."
    raise InputError(f"{number!r} is not the number of a proposal.", hint=hint)


def _drop_proposal(conversation: ChatConversation, proposal: ProposalView) -> None:
    conversation.proposals = [one for one in conversation.proposals if one != proposal]


BUILTIN_COMMANDS: Mapping[str, Callable[[ChatConversation, str], Awaitable[None] | None]] = {
    "/help": print_help,
    "/context": print_context,
    "/why": explain_item,
    "/frame": set_frame,
    "/strategy": set_strategy,
    "/model": select_model,
    "/undo": undo,
    "/private": toggle_privacy,
    "/branch": create_branch,
    "/switch": switch_session,
    "/tasks": run_task,
    "/yes": accept_proposals,
    "/no": reject_proposals,
}
