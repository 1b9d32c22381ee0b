"""Taking values out of a JSON answer, for the requests that follow."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from forktrail_lab.exchange.transcript import ReceivedResponse

VALUE_PATTERN = re.compile(r"[ !#-\[\]-~]{1,1024}")


class CaptureFailed(Exception):
    """An answer doesn't hold what the next request needs; the message quotes nothing of the answer."""


def captured_values(response: ReceivedResponse, pointers: Mapping[str, str]) -> dict[str, str]:
    """Look up each JSON Pointer (RFC 6901) in the answer's body.

    A value is a whole number, or a string of printable ASCII without quotes and backslashes, so that it can't break
    out of the JSON string or the path segment it is put into.

    Raises:
        CaptureFailed: the body is cut or no JSON, a pointer leads nowhere, or the value can't be used.
    """
    if response.truncated:
        raise CaptureFailed("the body was cut")
    try:
        document = json.loads(response.body)
    except (ValueError, RecursionError) as error:
        raise CaptureFailed("the body is not JSON") from error
    return {name: _usable(name, _resolve(document, pointer)) for name, pointer in pointers.items()}


def _resolve(document: object, pointer: str) -> object:
    here = document
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(here, dict) and key in here:
            here = here[key]
        elif isinstance(here, list) and re.fullmatch("0|[1-9][0-9]{0,8}", key) and int(key) < len(here):
            here = here[int(key)]
        else:
            raise CaptureFailed(f"the body has nothing at {pointer}")
    return here


def _usable(name: str, value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and VALUE_PATTERN.fullmatch(value) and value not in (".", ".."):
        return value
    raise CaptureFailed(f"the value for {name!r} is not a whole number or a plain string")
