"""Frames on the owner's socket: four bytes of length (big-endian), one of kind, and an object in JSON.

Kind 0 is JSON whose integers fit into 64 bits, which orjson reads and writes; kind 1 is JSON with a larger one among
them, which orjson would read as a float.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from forktrail_schemas.errors import InvalidInput

# A request holds a statement and its parameters; an answer comes in as many frames as it takes.
REQUEST_BYTES_MAX = 8 << 20
ANSWER_BYTES_MAX = 64 << 20
# Answers are cut into frames of about this size, so that none holds the others up.
CHUNK_BYTES = 1 << 20
CHUNK_ITEMS = 1_000

HEADER = struct.Struct(">IB")
_PLAIN, _LARGE_INTEGERS = 0, 1

Frame = dict[str, Any]  # JSON of any shape; who reads it checks what it holds


def frame_bytes(frame: Frame, bytes_max: int) -> bytes:
    """A frame as it goes over the socket.

    Raises:
        InvalidInput: it is too large, or holds text that isn't Unicode.
    """
    kind = _PLAIN
    try:
        body = orjson.dumps(frame)
    except TypeError as error:
        try:
            kind, body = _LARGE_INTEGERS, json.dumps(frame, ensure_ascii=False).encode()
        except (TypeError, ValueError):
            raise InvalidInput(f"this can't be sent to the graph's owner: {error}") from error
    if len(body) > bytes_max:
        raise InvalidInput(f"a frame of {len(body):,} bytes is too large, {bytes_max:,} may go", code="frame_too_large")
    return HEADER.pack(len(body), kind) + body


def request_bytes(request: Frame) -> bytes:
    """A request as it goes over the socket.

    Raises:
        InvalidInput: as for `frame_bytes`.
    """
    return frame_bytes(request, REQUEST_BYTES_MAX)


def answer_bytes(answer: Frame) -> bytes:
    """A frame of an answer as it goes over the socket.

    Raises:
        InvalidInput: as for `frame_bytes`.
    """
    return frame_bytes(answer, ANSWER_BYTES_MAX)


def body_length(header: bytes, bytes_max: int) -> tuple[int, int]:
    """The length and kind of the body that a header announces.

    Raises:
        InvalidInput: no frame of ours begins so.
    """
    length, kind = HEADER.unpack(header)
    if length > bytes_max:
        raise InvalidInput(f"a frame of {length:,} bytes is too large, {bytes_max:,} may come", code="frame_too_large")
    if kind not in (_PLAIN, _LARGE_INTEGERS):
        raise InvalidInput(f"there is no frame of kind {kind}", code="bad_frame")
    return length, kind


def frame_of(body: bytes, kind: int) -> Frame:
    """The object in a frame's body.

    Raises:
        InvalidInput: it isn't one.
    """
    try:
        frame = orjson.loads(body) if kind == _PLAIN else json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"a frame holds no JSON: {error}", code="bad_frame") from error
    if not isinstance(frame, dict):
        raise InvalidInput("a frame holds no JSON object", code="bad_frame")
    return frame


def chunks(items: Sequence[object]) -> Iterator[bytes]:
    """Frames that hold these items under `items`, each of CHUNK_BYTES at most unless one item alone is larger.

    Raises:
        InvalidInput: one item alone is larger than a frame may be.
    """
    waiting = [items[start : start + CHUNK_ITEMS] for start in range(0, len(items), CHUNK_ITEMS)][::-1]
    while waiting:
        part = waiting.pop()
        try:
            frame = frame_bytes({"items": part}, CHUNK_BYTES if len(part) > 1 else ANSWER_BYTES_MAX)
        except InvalidInput as error:
            if error.code != "frame_too_large" or len(part) == 1:
                raise
            half = len(part) // 2
            waiting += [part[half:], part[:half]]
        else:
            yield frame
