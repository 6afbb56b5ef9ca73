"""Remove credentials and payloads from texts for errors and logs.

`treadle.mask_text`, `treadle.excerpt` and `treadle.excerpt_name` do the same in SQL.
"""

import re

MAX_NAME = 30
_CREDENTIAL = re.compile(
    r"\b(?:gh[opsur]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}"
    r"|A[KS]IA[0-9A-Z]{12,}|xox[abeprs]-[\w-]{10,}|AIza[\w-]{16,}|trd_[0-9a-f]{12}_[\w-]*"
    r"|eyJ[\w-]{8,}(?:\.[\w-]*)*)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY(?s:.*)|://[^\s/:@]+:[^\s/@]+@"
    r"|\b(?:[Bb]earer|[Bb]asic) [A-Za-z0-9+/=._~-]{16,}"
    r"|[?&](?:access_token|api_?key|token|password|(?:client_)?secret)=[\w.~-]{8,}"
    r"|\b[A-Z0-9_]*(?:PASSWORD|TOKEN|SECRET|API_?KEY|ACCESS_KEY)=[\"']?[\w+/.~-]{8,}"
)
# Messages of PostgreSQL end with the wrong value.
_WRONG_VALUE = re.compile(r'^([^"]*: ")([^"]{4})[^"](?s:.*)"$')


def mask_text(text: str) -> str:
    """Replace what looks like a credential, and shorten the value at the end of a message."""
    return _CREDENTIAL.sub("***", _WRONG_VALUE.sub(r'\1\2..."', text))


def mask_detail(value: object) -> object:
    """Mask all texts in a JSON document."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, dict):
        return {
            mask_text(key) if isinstance(key, str) else key: mask_detail(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(map(mask_detail, value)) if type(value) in (list, tuple) else value
    return value


def excerpt(value: object) -> str:
    """Describe a value for an error message: a short prefix of a text, or the type."""
    if isinstance(value, str):
        return repr(value if len(value) <= 4 else f"{value[:4]}...")
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)[:MAX_NAME]
    return f"an object of the type {type(value).__name__}"


def excerpt_name(name: str) -> str:
    """Return a name for an error message: in full if it is short, else a prefix."""
    return mask_text(name) if len(name) <= MAX_NAME else f"{name[:4]}..."
