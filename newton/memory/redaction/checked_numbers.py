"""Numbers that carry check digits: payment cards and bank accounts. Pure."""

import re
from collections.abc import Iterator

from newton.memory.redaction.labelled_values import SecretSpan

# The first character is matched by a set, which Python searches fast; what precedes it is checked afterwards.
_CARD = re.compile(r"[3-6](?<![\w.,+/-][3-6])\d{2,3}(?:[ -]?\d){10,14}(?![\w/]|[.,-]\d)")
_CARD_RANGES = re.compile(
    r"4.{15}$|5[1-5].{14}$|2[2-7].{14}$|3[47].{13}$|6(?:011|5..|4[4-9].).{12}$|35.{14}$|3[068].{12}$"
)
_IBAN = re.compile(r"[A-Z](?<![A-Za-z0-9][A-Z])[A-Z]\d{2}(?:[ -]?[A-Z0-9]){11,30}")
_IBAN_LENGTHS = {  # ISO 13616
    **dict.fromkeys(("NO",), 15),
    **dict.fromkeys(("BE",), 16),
    **dict.fromkeys(("DK", "FI", "FO", "GL", "NL", "SD"), 18),
    **dict.fromkeys(("MK", "SI"), 19),
    **dict.fromkeys(("AT", "BA", "EE", "KZ", "LT", "LU", "XK"), 20),
    **dict.fromkeys(("CH", "HR", "LI", "LV"), 21),
    **dict.fromkeys(("BG", "BH", "CR", "DE", "GB", "GE", "IE", "ME", "RS", "VA"), 22),
    **dict.fromkeys(("AE", "GI", "IL", "IQ", "OM", "SO", "TL"), 23),
    **dict.fromkeys(("AD", "CZ", "ES", "MD", "PK", "RO", "SA", "SE", "SK", "TN", "VG"), 24),
    **dict.fromkeys(("LY", "PT", "ST"), 25),
    **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(("BI", "DJ", "FR", "GR", "IT", "MC", "MR", "SM"), 27),
    **dict.fromkeys(("AL", "AZ", "BY", "CY", "DO", "GT", "HN", "HU", "LB", "NI", "PL", "SV"), 28),
    **dict.fromkeys(("BR", "EG", "PS", "QA", "UA"), 29),
    **dict.fromkeys(("JO", "KW", "MU", "YE"), 30),
    **dict.fromkeys(("MT", "SC"), 31),
    **dict.fromkeys(("LC",), 32),
    **dict.fromkeys(("RU",), 33),
}


def find_checked_numbers(text: str) -> Iterator[SecretSpan]:
    """Yield the payment cards and bank accounts in a text whose check digits are right."""
    for match in _CARD.finditer(text):
        digits = _without_gaps(match[0])
        if _CARD_RANGES.match(digits) and _has_luhn_digit(digits):
            yield SecretSpan(match.start(), match.end(), "payment-card")
    for match in _IBAN.finditer(text):
        if (end := _iban_end(match)) is not None:
            yield SecretSpan(match.start(), end, "iban")


def _iban_end(match: re.Match[str]) -> int | None:
    """Return the end of the account number in the match, which may reach into following words, or None."""
    left = _IBAN_LENGTHS.get(match[0][:2], 0)
    if not left:
        return None
    end = match.start()
    for character in match[0]:
        if not left:
            break
        left -= character not in " -"
        end += 1
    number = _without_gaps(match.string[match.start() : end])
    follows_letter = match.string[end : end + 1].isalnum()
    return end if not left and not follows_letter and _has_mod_97_digits(number) else None


def _has_luhn_digit(digits: str) -> bool:
    """Return whether the last digit is the check digit of a payment card (ISO/IEC 7812).

    >>> _has_luhn_digit("4111111111111111"), _has_luhn_digit("4111111111111112")
    (True, False)
    """
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(one - 9 if one > 9 else one for one in doubled)) % 10 == 0


def _has_mod_97_digits(number: str) -> bool:
    """Return whether the check digits of an IBAN are right (ISO 13616).

    >>> _has_mod_97_digits("DE89370400440532013000")
    True
    """
    return int("".join(str(int(character, 36)) for character in number[4:] + number[:4])) % 97 == 1


def _without_gaps(text: str) -> str:
    return text.replace(" ", "").replace("-", "")
