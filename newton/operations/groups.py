"""The groups of operations: `newton help` lists commands by them, and MCP offers tools by them. It loads no library."""

from collections.abc import Mapping
from typing import NamedTuple


class OperationGroup(NamedTuple):
    """A group: what its operations do, and the packages of `newton.operations` that declare them."""

    description: str
    packages: tuple[str, ...] = ()


GROUPS: Mapping[str, OperationGroup] = {
    "memory": OperationGroup("Store, find, correct and delete facts, entities and documents.", ("memories",)),
    "decisions": OperationGroup("Record and review decisions, and compare confidence with outcomes.", ("decisions",)),
    "sessions": OperationGroup("Talk, and manage conversations, their tasks and artifacts.", ("conversations",)),
    "contexts": OperationGroup("Show contexts, explain what is in them, and measure their quality.", ("contexts",)),
    "rules": OperationGroup("Say who the agent is, and what it must, may and must not do.", ("rules", "agent")),
    "server": OperationGroup("Run and check the daemon, its agents, jobs, tokens and connections."),
    "data": OperationGroup("Import, export, back up and move everything that is stored."),
}
GROUPS_BY_PACKAGE = {package: name for name, group in GROUPS.items() for package in group.packages}
