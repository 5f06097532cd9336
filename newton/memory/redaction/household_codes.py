"""The choice whether this process stores the codes of a household: of doors, alarms, safes and the Wi-Fi.

They are secrets, but people also store them to be reminded of them. The setting `keep_household_codes` decides, and is
read once at start.
"""

_is_kept = True


def keep_household_codes(*, keep: bool) -> None:
    """Store the codes of a household in this process from now on, or redact them."""
    global _is_kept  # noqa: PLW0603 - texts are redacted in places that know no settings
    _is_kept = keep


def are_kept() -> bool:
    return _is_kept
