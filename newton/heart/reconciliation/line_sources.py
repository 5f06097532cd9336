"""Checks whether a proposed text is supported by a line, and whether the line is about a known item. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from newton.heart.reconciliation.derived_days import DerivedDays, derive_days, list_weekdays, mask_derived_dates
from newton.heart.reconciliation.quoted_text import mask_quotations, split_own_words
from newton.heart.reconciliation.reconciling_types import KnownItem, NewLine, ReconcilingInput
from newton.heart.reconciliation.text_evidence import (
    TextEvidence,
    collect_evidence,
    find_unsupported_names,
    find_unsupported_numbers,
    list_own_names,
    list_stems,
    share_stems,
)
from newton.memory.memory import PERSON_TIERS
from newton.text.languages import ENGLISH, detect_language
from newton.text.numerals import NumberMention, find_numbers
from newton.text.questions import is_only_question, remove_questions
from newton.text.words import is_empty_remark

MAX_EARLIER = 3  # lines of persons before a line that support an item on it
NEAR_SIMILARITY = 0.35  # from which a line is about an item whatever its words
LINKING_SIMILARITY = 0.1  # from which one shared word of a new statement links a line to an item
MAX_NOVELTY = 0.75  # share of the words of a text that its sources do not have
MAX_WORDING = 300  # characters
MIN_LINKING = 2  # words of a line, or a number, that a text has which links the line to a known item
# Stems of measures, which any text may have with a number.
_UNITS = list_stems(
    "euros dollars pounds pence cents francs crowns minutes hours days weeks months years Uhr Minuten Stunden Tage"
    " Wochen Monate Jahre Pfund heures jours semaines mois années horas días semanas meses años libras"
)
SCALE = 1_000  # "the price went down to 388", of 395,000

_SENTENCE = re.compile(r"\S(?:[^\n.!?。！？]|[.!?](?!\s)|(?<=\b[DMS][rst]|\b[dm]r)\.|(?<=\bMrs)\.)*[.!?。！？]*")


_OPENING = r"\W*(?:(?:oh|ah|ok|okay|well|um|so)\W+)*"
_AFFIRMATION = re.compile(
    _OPENING
    + r"(?:yes|yeah|yep|yup|sure|right|correct|exactly|true|indeed|absolutely|definitely|please do|do (?:that|it)"
    r"|of course|that's (?:it|right|correct|true)|ok(?:ay)?|ja|jo|jawohl|genau|stimmt|richtig|klar|gerne?|passt|s[íi]"
    r"|claro|exacto|correcto|vale|oui|ouais|exact(?:ement)?|d'accord|bien sûr|s[iì]|esatto|certo|va bene|sim|isso|exato"
    r"|tak|zgadza się|da|да|ага|верно|точно|evet|doğru|klopt|juist|precies|はい|そう|是|对|好)(?![^\W\d_])",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    _OPENING + r"(?:no(?!\s*(?:\d|\.\s*\d))|nope|nah|never|not|wrong|don't|do not|nein|nee|nicht|falsch|non|pas|não"
    r"|nie|нет|неверно|hayır|いいえ|不)(?![^\W\d_])",
    re.IGNORECASE,
)


def affirms(text: str) -> bool:
    """Return whether a text begins with a yes, as an answer does.

    >>> [affirms(text) for text in ("Yes, please.", "Genau.", "No. Buy milk.", "Yesterday it rained.")]
    [True, True, False, False]
    """
    return _AFFIRMATION.match(text) is not None


@dataclass(frozen=True, slots=True)
class LineSources:
    """The lines of a batch as sources of proposed texts: each line with the lines before it that may be stored.

    `hidden` are the numbers of the lines that must not be stored.
    """

    batch: ReconcilingInput
    hidden: frozenset[int] = frozenset()
    max_earlier: int = MAX_EARLIER

    def list_persons(self, line: NewLine) -> list[NewLine]:
        """Return up to `max_earlier` earlier lines of persons, which the line may continue, and the line itself."""
        earlier = [one for one in self._list_before(line) if one.source == "person" and one.number not in self.hidden]
        return [*earlier[-self.max_earlier :], line]

    def find_answered(self, line: NewLine) -> NewLine | None:
        """Return the line of the assistant that a line answers; None if other lines stand between them.

        It is a question that the line does not deny, or anything that it affirms.
        """
        for one in reversed(self._list_before(line)[-2:]):
            if one.source == "assistant":
                asks = ("?" in one.text or "？" in one.text) and not is_empty_remark(line.text)
                return one if affirms(line.text) or (asks and not _DENIAL.match(line.text)) else None
            if one.speaker != line.speaker:
                return None
        return None

    def find_unsupported(self, text: str, line: NewLine, known: Sequence[KnownItem]) -> bool:
        """Return whether a text has a name, a number or a date that its sources do not have.

        Sources are the lines of persons, the linked known items, the user's names, and the names in other known items
        of persons. A line of the assistant that the line affirms counts too, except what foreign text before it has.
        """
        said_on, code = self.batch.day_of(line), detect_language(f"{line.text} {text}")
        masked = mask_derived_dates(text, said_on, self.derive_days(line, known))
        if masked is None:
            return True
        sources = self._collect(line, known, code)
        names = find_unsupported_names(text, sources.names)
        numbers = [
            number
            for number in find_unsupported_numbers(masked, sources.own, code=code)
            if not self._is_scaled(number, sources.own, known)
        ]
        answered = self.find_answered(line)
        if answered is None or not (names or numbers) or not affirms(line.text):
            return bool(names or numbers)
        said, foreign = collect_evidence([answered.text], code=code), self._collect_foreign(code)
        return any(foreign.has_name(name) or not said.has_name(name) for name in names) or any(
            foreign.has_number(number) or not said.has_number(number) for number in numbers
        )

    def derive_days(self, line: NewLine, known: Sequence[KnownItem]) -> DerivedDays:
        """Return the days that follow from the line, the lines before it and the linked known items."""
        lines = [*self.list_persons(line), *filter(None, [self.find_answered(line)])]
        texts: list[tuple[str, date]] = [(one.text, self.batch.day_of(one)) for one in lines]
        return derive_days([*texts, *((item.text, item.day) for item in known)])

    def measure_novelty(self, text: str, line: NewLine, known: Sequence[KnownItem]) -> float:
        """Return the share of a text's words, in [0, 1], that neither the lines nor the linked items contain.

        A number of the text that is in the lines counts as a known word ("She is 58 years old").
        """
        stems = self._without_user(list_stems(text))
        texts = [*self.batch.user_names, *(item.text for item in known)]
        sources = self._context_stems(line).union(*map(list_stems, texts))
        numbers = self._count_numbers(text, line)
        return 1 - (len(share_stems(stems, sources)) + numbers) / (len(stems) + numbers) if stems else 0.0

    def borrows(self, text: str, line: NewLine, known: Sequence[KnownItem]) -> bool:
        """Return whether a text has a word, name or number that only foreign text of the batch has.

        Text that a person quotes or pastes is foreign; what a person or a linked known item says is not.
        """
        code = detect_language(f"{line.text} {text}")
        foreign = self._collect_foreign(code)
        if not foreign.text:
            return False
        own = self._collect(line, known, code)
        names, numbers = find_unsupported_names(text, own.names), find_unsupported_numbers(text, own.own, code=code)
        if any(map(foreign.has_name, names)) or any(map(foreign.has_number, numbers)):
            return True
        persons = [split_own_words(one.text).own for one in (*self._list_before(line), line) if one.source == "person"]
        said = frozenset[str]().union(*map(list_stems, [*persons, *(item.text for item in known)]))
        stems = self._without_user(list_stems(text)) - _UNITS
        return bool(share_stems(stems - share_stems(stems, said), foreign.stems))

    def says_news(self, text: str, line: NewLine, known: Sequence[KnownItem]) -> bool:
        """Return whether a line, with what it continues or answers, has a new word, number or weekday of a text.

        It also has it if it begins with a yes, or if the text has no word that the known items lack. What was read
        from the line itself is no known item here.
        """
        stems = self._without_user(list_stems(text))
        older = (list_stems(item.text) for item in known if item.drafted_by != line.memory_id)
        new = stems - share_stems(stems, frozenset[str]().union(*older))
        is_said = not new or affirms(line.text) or bool(share_stems(new, self._context_stems(line)))
        told, said = (list_weekdays(one, self.batch.day_of(line)) for one in (text, line.text))
        return is_said or self._shares_numbers(text, line) or bool(told & said)

    def count_own_words(self, text: str, line: NewLine) -> int:
        """Return how many words of a text are the person's own in this line, without quotations."""
        return len(share_stems(self._without_user(list_stems(text)), self._own_stems(line)))

    def is_grounded(self, text: str, line: NewLine) -> bool:
        """Return whether a text shares a word or a number with the person's own words or what they answer."""
        stems = self._without_user(list_stems(text))
        return bool(share_stems(stems, self._context_stems(line))) or self._shares_numbers(text, line)

    def is_about(self, line: NewLine, item: KnownItem, text: str = "") -> bool:
        """Return whether a line, with what it continues or answers, shares a word, number or meaning with an item.

        A new statement that shares words with both, as "the price of the house", links the line to the item: by two
        words, or by one if line and item have a similar meaning.
        """
        # the vector of a line is also that of what it quotes
        is_own = not split_own_words(line.text).foreign
        similarity = item.similarities.get(line.memory_id, 0.0) if is_own else 0.0
        if similarity >= NEAR_SIMILARITY or self._shares_numbers(item.text, line):
            return True
        stems = self._item_stems(item)
        weight = self.count_own_words(text, line) + self._weigh_numbers(text, line)
        needed = 1 if similarity >= LINKING_SIMILARITY else MIN_LINKING
        is_linked = weight >= needed and bool(share_stems(stems, list_stems(text)))
        return is_linked or bool(share_stems(stems, self._context_stems(line)))

    def are_related(self, item: KnownItem, other: KnownItem) -> bool:
        """Return whether two known items share a word, apart from the user's names."""
        return bool(share_stems(self._item_stems(item), self._item_stems(other)))

    def uses_words_of(self, item: KnownItem, lines: Sequence[NewLine]) -> bool:
        """Return whether one of the lines has a word of the item, in the speaker's own words."""
        return any(share_stems(self._item_stems(item), self._own_stems(one)) for one in lines)

    def pick_wording(self, line: NewLine, text: str) -> str:
        """Return the sentences of a line that together cover the words of a text, shortened if long."""
        own = split_own_words(line.text).own
        sentences = _SENTENCE.findall(own) or [own]
        stems = list_stems(text)
        shares = [share_stems(stems, list_stems(sentence)) for sentence in sentences]
        covered, picked = frozenset[str](), list[int]()
        for n in sorted(range(len(sentences)), key=lambda n: -len(shares[n])):
            if shares[n] - covered or (shares[n] and len(shares[n]) == len(shares[picked[0]])):
                covered, picked = covered | shares[n], [*picked, n]
        wording = " ".join((" ".join(sentences[n] for n in sorted(picked)) or own).split())
        return wording if len(wording) <= MAX_WORDING else f"{wording[: MAX_WORDING - 2].rstrip()} …"

    def _list_before(self, line: NewLine) -> list[NewLine]:
        return [one for one in self.batch.lines if one.number < line.number]

    def _collect(self, line: NewLine, known: Sequence[KnownItem], code: str) -> "_Evidence":
        texts = [text for one in self.list_persons(line) for text in (split_own_words(one.text).own, one.speaker)]
        texts += [text for item in known for text in (item.text, item.subject, f"{item.day:%Y}")]
        year = self.batch.day_of(line).year
        texts.append(f"{year} {year + 1}")  # "before spring" may mean the next one
        own = collect_evidence([*texts, *self.batch.user_names], code=code)
        others = (item.text for item in self.batch.known if item.trust in PERSON_TIERS)
        return _Evidence(own, collect_evidence([*texts, *self.batch.user_names, *others]))

    def _context_stems(self, line: NewLine) -> frozenset[str]:
        """Return the stems of a line, of what it continues, and of the reply that it answers.

        If the conversation has foreign text, questions are left out, and words of the reply that are in foreign text.
        """
        persons, answered = self.list_persons(line), self.find_answered(line)
        foreign = self._collect_foreign(ENGLISH)
        if foreign.text:
            persons = [one for one in persons if not is_only_question(split_own_words(one.text).own)]
            persons = [replace(one, text=remove_questions(split_own_words(one.text).own)) for one in persons]
        replied = self._own_stems(answered) if answered else frozenset[str]()
        return frozenset[str]().union(*map(self._own_stems, persons), replied - share_stems(replied, foreign.stems))

    def _collect_foreign(self, code: str) -> TextEvidence:
        """Return what the foreign text of the batch contains, and what persons quote or paste."""
        texts = (
            one.text if one.source == "foreign" else split_own_words(one.text).foreign
            for one in self.batch.lines
            if one.source != "assistant"
        )
        return collect_evidence(filter(None, texts), code=code)

    def _own_stems(self, line: NewLine) -> frozenset[str]:
        """Return the stems of a line without quotations, and of the names that its aliases stand for."""
        text = mask_quotations(line.text)
        pairs = (alias.partition("=") for alias in self.batch.aliases if "=" in alias)
        meant = [name for alias, _, name in pairs if list_stems(alias) & list_stems(text)]
        return list_stems(" . ".join([text, *meant])) if meant else list_stems(text)

    def _item_stems(self, item: KnownItem) -> frozenset[str]:
        return self._without_user(list_stems(f"{item.text} {item.subject} {item.attribute}"))

    def _shares_numbers(self, text: str, line: NewLine) -> bool:
        return self._weigh_numbers(text, line) >= MIN_LINKING

    def _weigh_numbers(self, text: str, line: NewLine) -> int:
        """Return how strongly shared numbers link a text to a line: each digit counts as one shared word."""
        return sum(map(len, self._list_shared_numbers(text, line)))

    def _count_numbers(self, text: str, line: NewLine) -> int:
        return len([form for form in self._list_shared_numbers(text, line) if len(form) >= MIN_LINKING])

    def _list_shared_numbers(self, text: str, line: NewLine) -> list[str]:
        spoken = collect_evidence(one.text for one in self.list_persons(line)).numbers
        numbers = find_numbers(text, detect_language(text))
        forms = {form for number in numbers for form in number.forms} - {"0", "1"}
        return [form for form in forms if form in spoken or form.removesuffix("000") in spoken]

    def _without_user(self, stems: frozenset[str]) -> frozenset[str]:
        return stems - list_stems(" . ".join(list_own_names(self.batch.user_names)))

    def _is_scaled(self, number: NumberMention, own: TextEvidence, known: Sequence[KnownItem]) -> bool:
        """Return whether a number is a number of the line times a thousand, and a known item has a similar number."""
        large = {
            form for item in known for one in find_numbers(item.text, "en") for form in one.forms if form.isdigit()
        }
        return any(
            form.isdigit()
            and int(form) % SCALE == 0
            and str(int(form) // SCALE) in own.numbers
            and any(int(form) / 10 < int(other) < int(form) * 10 for other in large)
            for form in number.forms
        )


@dataclass(frozen=True, slots=True)
class _Evidence:
    own: TextEvidence  # for numbers
    names: TextEvidence
