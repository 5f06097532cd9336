"""Detection of messages that state a standing instruction or a preference, so that later requests find them. Pure.

The identity takes only clauses that are certain to be meant for good. Here a message is only marked, to be considered
for requests that are similar to it, so a preference counts wherever in a message it is stated.
"""

import re

from newton.heart.identity.standing_instructions import detect_instructions, mask_foreign_text
from newton.heart.identity.wish_patterns import concerns_every_answer
from newton.memory.memory import StandingType
from newton.text.languages import ENGLISH, detect_language
from newton.text.patterns import states_preference

_VERY = r"(?:(?:really|generally|usually|much|strongly|always|also|definitely|mostly|would|do) )*"
_PREFERENCES = (
    rf"I {_VERY}prefer",
    r"I(?:'d| would) (?:much )?(?:rather|prefer)",
    r"my (?:\w+ )?preferences?",
    rf"I {_VERY}(?:dislike|hate|detest|can't stand|cannot stand|avoid)",
    rf"I (?:do not|don't) {_VERY}(?:like|want to use|eat|drink)",
    r"I(?:'m| am) (?:a )?(?:vegan|vegetarian|allergic|a fan of|trying to (?:keep|avoid|stay|stick)|trying not to)",
    r"I (?:always|never|usually|tend to|try to|like to|want to) (?:use|choose|avoid|stick|stay|keep|go for|work)",
)
_PREFERENCE = re.compile(rf"\b(?:{'|'.join(_PREFERENCES)})\b", re.IGNORECASE)


def find_standing_type(text: str) -> StandingType | None:
    """Return whether a message of a person states an instruction or a preference for later requests; None for neither.

    >>> texts = ("Never suggest meat.", "Since I prefer tea, which one is mild?", "Where is the tea?", "No emojis.")
    >>> [find_standing_type(text) for text in texts]
    ['instruction', 'preference', None, 'manner']
    """
    code = detect_language(text)
    found = detect_instructions(text)
    if code == ENGLISH and any(concerns_every_answer(one.text) for one in found):
        return "manner"
    parts = {one.part for one in found}
    if "instruction" in parts:
        return "instruction"
    if code != ENGLISH:
        return "preference" if states_preference(text, code) else None
    return "preference" if "preference" in parts or _PREFERENCE.search(mask_foreign_text(text)) else None
