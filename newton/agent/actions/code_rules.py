"""Rules on the arguments of any call: they carry no secret and no code of a household, in no form. Pure."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from newton.agent.actions.act_requests import read_request
from newton.agent.actions.hidden_codes import has_hidden_code
from newton.agent.actions.link_text import compact, find_links, split_link, turn_forms
from newton.agent.actions.outbound_rules import (
    CHANNEL,
    EMAIL,
    HANDLE,
    NUMBER,
    OutboundRules,
    decode,
    find_secrets,
    iter_named_strings,
    split_tokens,
    stands_in,
)
from newton.agent.actions.person_names import ACCOUNT, RECIPIENTS, PersonNames
from newton.memory.hygiene import has_secret
from newton.text.letters import fold
from newton.text.numerals import spells_number
from newton.text.sentences import STOP_WORDS, split_sentences
from newton.text.stems import stem_word
from newton.text.words import COMMON_WORDS

MIN_LABEL_WORDS = 2  # by which a message names a code: "door code", or one that is both, such as "Türcode"
_HYPHEN = re.compile(r"(?<=\w)-(?=\w)")  # "Wi-Fi"
_LABEL = re.compile(r"\w(?:cod|pin|passwor|kennwor)")


@dataclass(frozen=True)
class CodeRules:
    """The rules on codes in arguments, for the texts of one prompt."""

    rules: OutboundRules

    def find_argument_problem(self, arguments: Mapping[str, object]) -> str | None:
        """Return why a call with these arguments, also one that only reads, is to be asked about; None if it is not."""
        named = list(iter_named_strings(arguments))
        values = [value for _, value in named]
        texts = (*values, " ".join(values), json.dumps(arguments, ensure_ascii=False))
        codes = self.rules.codes - self._find_free(named)
        payees = self._list_payees(named)
        if any(_has_code_in_text(text, codes) or has_secret(_drop(text, payees)) for text in texts):
            return "its arguments carry a secret or a code"
        if problem := self._find_form(values, codes):
            return problem
        for link in (link for value in values for link in find_links(value)):
            if problem := self.rules.find_link_problem(link.url):
                return f"of the link to {split_link(link.url).host}: {problem}"
        return None

    def _list_payees(self, named: Iterable[tuple[str, str]]) -> list[str]:
        """Return the accounts to pay to that stand in the message or in text of others, and not in memory."""
        texts = self.rules.texts
        told = fold("\n".join((texts.asked, texts.agreed, *texts.foreign)))
        kept = fold("\n".join((*texts.known, *texts.memory)))
        accounts = [value for name, value in named if RECIPIENTS.search(name) and ACCOUNT.fullmatch(value)]
        return [one for one in accounts if stands_in(one, told) and not stands_in(one, kept)]

    def _find_form(self, values: Sequence[str], codes: Iterable[str]) -> str | None:
        """Return why values, also with those of the calls before, may be one of the codes in another form."""
        texts, said = self.rules.texts, "\n".join(values)
        numbers = [code for code in codes if code.isdigit()]
        if numbers and spells_number(said, numbers, besides=texts.asked):
            return "its arguments carry the numbers of a code"
        if any(self._completes(before, said, numbers) for before in texts.sent if numbers):
            return "its arguments, after those of the calls before it, carry the numbers of a code"
        everything = (*self.rules.trusted, *texts.memory, *texts.foreign, *texts.reported)
        if codes and has_hidden_code(values, [*codes], texts=everything, foreign=self.rules.foreign_text):
            return "its arguments may carry a code in another form"
        return None

    def _completes(self, before: str, said: str, numbers: Iterable[str]) -> bool:
        """Return whether a text, after those before it, completes one of the numbers that they do not have."""
        parted = [one for one in numbers if not spells_number(before, [one])]
        return bool(parted) and spells_number(f"{before}\n{said}", parted, besides=self.rules.texts.asked)

    def _find_free(self, named: Sequence[tuple[str, str]]) -> frozenset[str]:
        """Return the codes that may leave: the message has the code or names it, and all recipients of the call."""
        if self._names_recipients([value for _, value in named]):
            return frozenset(map(compact, find_secrets(self.rules.texts.asked))) | self._asked_codes
        return self._asked_codes if self._asked_codes and self._are_persons(named) else frozenset()

    def _names_recipients(self, values: Iterable[str]) -> bool:
        """Return whether a call has recipients, such as addresses and channels, and the message has them all."""
        asked, found = fold(self.rules.texts.asked), _list_addresses(values)
        return bool(found) and all(stands_in(one, asked) for one in found)

    def _are_persons(self, named: Sequence[tuple[str, str]]) -> bool:
        """Return whether a call has recipients, all of which are persons whom the message names."""
        lines = [line for text in self.rules.trusted for line in text.splitlines()]
        asked = PersonNames("", [self.rules.texts.asked])
        addresses = _list_addresses([value for _, value in named])
        names = [value for name, value in named if RECIPIENTS.search(name) and not _list_addresses([value])]
        return bool(addresses or names) and (
            all(asked.has_recipient(one, "") for one in names)
            and all(any(stands_in(one, fold(line)) and self._names_person(line) for line in lines) for one in addresses)
        )

    def _names_person(self, line: str) -> bool:
        """Return whether the message has a name of a line of memory, which has an address."""
        plain = EMAIL.sub(" ", line)
        names = {one for one in re.findall(r"(?<!\w)[A-ZÀ-ÞА-Я][^\W\d_]{2,}", plain) if one.lower() not in COMMON_WORDS}
        return not self.rules.asked_words.isdisjoint(map(fold, names))

    @cached_property
    def _asked_codes(self) -> frozenset[str]:
        """Return the code of a memory that the message asks to send by its name: "Send Vera the door code."."""
        found = dict[str, int]()
        lines = (line for text in self.rules.trusted for line in text.splitlines())
        for sentence in (sentence for line in lines for sentence in split_sentences(line)):
            words = {
                one for one in split_tokens(_HYPHEN.sub("", fold(sentence))) if len(one) > 2 and one not in STOP_WORDS
            }
            shared = self._sent_words & set(map(stem_word, words))
            is_named = len(shared) >= MIN_LABEL_WORDS or any(map(_LABEL.search, shared))
            found |= {compact(code): len(shared) for code in find_secrets(sentence) if is_named}
        best = [code for code, count in found.items() if count == max(found.values())]
        return frozenset(best) if len(best) == 1 else frozenset()

    @cached_property
    def _sent_words(self) -> frozenset[str]:
        """Return the words of the sentences of the message that ask to send something."""
        texts = self.rules.texts
        sentences = split_sentences(texts.requests[0]) if texts.requests else []
        asking = [one for one in sentences if {"send", "share"} & read_request(one, whole=texts.asked).kinds]
        return frozenset(stem_word(one) for text in asking for one in split_tokens(_HYPHEN.sub("", fold(text))))


def _drop(text: str, parts: Iterable[str]) -> str:
    for part in parts:
        text = text.replace(part, " ")
    return text


def _list_addresses(values: Iterable[str]) -> list[str]:
    return [one for value in values for form in (EMAIL, HANDLE, NUMBER, CHANNEL) for one in form.findall(value)]


def _has_code_in_text(text: str, codes: Iterable[str]) -> bool:
    """Return whether a text, or what it decodes to, has one of the codes, also with separators in it."""
    forms = [r"[\W_]{0,3}".join(map(re.escape, code)) for code in codes]
    patterns = [rf"(?<!\w)0*{one}0*(?!\w)" for one in forms]  # also "45.008306"
    turned = map(fold, turn_forms(decode(text))) if patterns else ()
    return any(re.search(pattern, form) for form in turned for pattern in patterns)
