"""What the error of a server says of a prompt that it refuses as too long. Pure.

The patterns match the messages of OpenAI, Anthropic, Gemini, Mistral, Groq, xAI, vLLM, SGLang, llama.cpp,
Ollama and LM Studio.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from newton.errors import RefusedSize

_NUMBER = r"(\d[\d,]*)"
_WINDOW_PATTERNS = (
    rf"\bn_ctx\W{{1,6}}{_NUMBER}",
    rf"exceed context limit: [\d,]+ \+ [\d,]+ > {_NUMBER}",
    rf"context (?:length|window|size)(?: is| of(?: only)?| only supports)? \(?{_NUMBER}",
    rf"{_NUMBER} maximum\b",
    rf"maximum (?:allowed length|number of tokens allowed) \(?{_NUMBER}",
    rf"maximum prompt length is {_NUMBER}",
    rf"model token limit: {_NUMBER}",
    rf"\bLimit {_NUMBER}, Requested",
    rf"length should be \[1, {_NUMBER}\]",
)
_PROMPT_PATTERNS = (
    rf"\bn_prompt_tokens\W{{1,4}}{_NUMBER}",
    rf"{_NUMBER} in (?:the messages|your prompt)",
    rf"messages resulted in {_NUMBER}",
    rf"prompt is too long: {_NUMBER}",
    rf"exceed context limit: {_NUMBER} \+",
    rf"\brequest (?:has |contains )?\(?{_NUMBER} (?:input )?tokens",
    rf"\b(?:input|prompt)(?: length| token count| has| contains)? \(?{_NUMBER}",
    rf"keep the first {_NUMBER} tokens",
    rf"\bn_keep\W{{1,4}}{_NUMBER}",
    rf"\brequested: {_NUMBER}",
)
# The fields of an error that are the server's own words. Others may quote the request.
_REFUSAL_FIELDS = ("message", "detail", "code", "type", "n_prompt_tokens", "n_ctx")
_QUOTE = re.compile(r"\{|\binput_value=")  # begins a quoted request in a message, or the error of another server
_MAX_CHARS = 600  # of a message; what follows may quote the request
_EXCESS_PATTERNS = (rf"exceeded (?:max )?context length by {_NUMBER}",)


def read_refusal(body: object) -> str:
    """Return what the error of a server says in its own words, without the request that it may quote.

    Ollama and proxies send the error of another server as JSON within the message.

    >>> read_refusal({"message": "Field required", "code": 400, "input": "Explain the context window."})
    'message: Field required code: 400'
    """
    if isinstance(body, dict):
        fields = cast("dict[str, object]", body)
        if "error" in fields:
            return read_refusal(fields["error"])
        found = ((name, fields.get(name)) for name in _REFUSAL_FIELDS)
        return " ".join(f"{name}: {read_refusal(value)}" for name, value in found if isinstance(value, str | int))
    text = str(body)
    if (quote := _QUOTE.search(text)) is None:
        return text[:_MAX_CHARS]
    own = text[: quote.start()][:_MAX_CHARS]
    with suppress(ValueError, RecursionError):
        own += read_refusal(json.JSONDecoder().raw_decode(text, quote.start())[0])
    return own


def parse_refused_size(text: str) -> RefusedSize:
    """Return the numbers of tokens in the error of a server.

    >>> parse_refused_size("prompt is too long: 212000 tokens > 200000 maximum")
    RefusedSize(window=200000, prompt=212000, excess=None)
    >>> parse_refused_size("prompt too long; exceeded max context length by 512 tokens")
    RefusedSize(window=None, prompt=None, excess=512)
    """
    sources = (_WINDOW_PATTERNS, _PROMPT_PATTERNS, _EXCESS_PATTERNS)
    return RefusedSize(*(_find_number(patterns, text) for patterns in sources))


def _find_number(patterns: Sequence[str], text: str) -> int | None:
    matches = (re.search(pattern, text, re.IGNORECASE) for pattern in patterns)
    return next((int(found[1].replace(",", "")) for found in matches if found), None)
