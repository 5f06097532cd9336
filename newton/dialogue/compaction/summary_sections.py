"""The parts of a summary, and their headings for each kind of summarized block. Pure."""

from collections.abc import Mapping
from typing import Literal, get_args

from newton.dialogue.view import EntryKind

SummaryPart = Literal["asked", "did", "decided", "found", "failed", "worked", "rule", "thing", "open", "state"]

PARTS: tuple[SummaryPart, ...] = get_args(SummaryPart)

# The headings of the parts by kind of block, in order.
SECTIONS: Mapping[EntryKind, Mapping[SummaryPart, str]] = {
    "tools": {
        "decided": "Strategy",
        "did": "Operations",
        "found": "Discoveries",
        "failed": "Dead Ends",
        "worked": "What Worked",
        "thing": "Critical Artifacts",
        "state": "Status",
    },
    "turn": {
        "asked": "Asked",
        "worked": "Milestones",
        "decided": "Key Decisions",
        "rule": "Constraints",
        "did": "Operations",
        "found": "Findings",
        "failed": "Dead Ends",
        "thing": "Critical Artifacts",
        "open": "Open Items",
        "state": "Current State",
    },
    "goals": {
        "asked": "Goal Arc",
        "decided": "Human Direction",
        "worked": "What Was Achieved",
        "found": "Findings",
        "failed": "Dead Ends",
        "rule": "Lasting Constraints",
        "thing": "Key Artifacts",
        "open": "Open Items",
    },
}
HEADINGS: Mapping[EntryKind, str] = {
    "tools": "[SUMMARIZED] What I did with tools here:",
    "turn": "[SUMMARIZED] Earlier in this conversation:",
    "goals": "[GOAL BATCH] Earlier in this conversation:",
    "merged": "[GOAL BATCH] The beginning of this conversation:",
}
# Items selected per round when not all fit. Parts that prevent mistakes and repetition come first; names are short.
ITEMS_PER_ROUND: Mapping[SummaryPart, int] = {
    "decided": 2,
    "failed": 2,
    "rule": 2,
    "open": 2,
    "thing": 3,
    "worked": 1,
    "asked": 1,
    "found": 1,
    "state": 1,
    "did": 1,
}
