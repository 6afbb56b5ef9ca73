"""A look at JSON before it is parsed: what nobody sends by mistake costs next to nothing.

The scan agrees with a parser on every text that is JSON. Where it is not, the parser says so.
"""

import re
from itertools import accumulate

MAX_DEPTH = 64
# Objects and lists in one body: each costs a parser far more than its two brackets.
MAX_PARTS = 100_000
MAX_DIGITS = 308

_STEPS = [0] * 256
for _character, _step in zip(b"[{]}", (1, 1, -1, -1), strict=True):
    _STEPS[_character] = _step
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
# All digits alike, so that a plain search finds many of them in a row.
_ALIKE = bytes.maketrans(b"123456789E", b"000000000e")
_LONG = b"0" * (MAX_DIGITS + 1)
_BIG = re.compile(rb"[eE]\+?0*(?:309|3[1-9][0-9]|[4-9][0-9]{2}|[1-9][0-9]{3})")
_LONE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)


def fault(body: bytes) -> str | None:
    """What is wrong with this JSON; None where it can be parsed without fear."""
    if not body.isascii():
        try:
            body.decode()
        except UnicodeDecodeError:
            return "the body is not UTF-8"
    if b"\0" in body:
        return "the body holds a NUL character, which cannot be stored"
    if b"\\u" in body and (found := _bad_escape(body)):
        return found
    openings = body.count(b"[") + body.count(b"{")
    if openings > MAX_DEPTH or _has_odd_number(body):
        return _bad_structure(body)
    return None


def _has_odd_number(body: bytes) -> bool:
    """Whether there may be a number, in a string or not, that is none or has no end."""
    alike = body.translate(_ALIKE)
    return (
        _LONG in alike
        or b"e000" in alike
        or b"e+000" in alike
        or b"NaN" in body
        or b"Infinity" in body
    )


def _bad_escape(body: bytes) -> str | None:
    plain = body.replace(b"\\\\", b"  ")
    if b"\\u0000" in plain:
        return "the body holds a NUL character, which cannot be stored"
    if _LONE.search(plain):
        return "the body holds half of a surrogate pair, which is not text"
    return None


def _bad_structure(body: bytes) -> str | None:
    plain = body
    if b"\\" in body:
        plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # What stands between strings.
    outside = b" ".join(plain.split(b'"')[::2])
    brackets = outside.translate(None, _NO_BRACKETS)
    if brackets.count(b"[") + brackets.count(b"{") > MAX_PARTS:
        return f"the body has more than {MAX_PARTS} objects and lists"
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH:
        return f"the body is nested more than {MAX_DEPTH} levels deep"
    if b"NaN" in outside or b"Infinity" in outside:
        return "the body holds NaN or Infinity, which JSON does not have"
    if _LONG in outside.translate(_ALIKE):
        return f"the body holds a number of more than {MAX_DIGITS} digits"
    if _BIG.search(outside):
        return "the body holds a number that is too large"
    return None
