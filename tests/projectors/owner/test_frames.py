"""Frames carry any JSON there and back, in pieces where it is long, and refuse what is no frame of ours."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forktrail_projectors.owner import frames
from forktrail_projectors.owner.frames import ANSWER_BYTES_MAX, HEADER, body_length, chunks, frame_bytes, frame_of
from forktrail_schemas.errors import InvalidInput

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def read(data: bytes) -> Any:
    length, kind = body_length(data[: HEADER.size], ANSWER_BYTES_MAX)
    assert len(data) == HEADER.size + length
    return frame_of(data[HEADER.size :], kind)


@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_what_is_framed_comes_back_equal(frame: dict[str, Any]) -> None:
    assert read(frame_bytes(frame, ANSWER_BYTES_MAX)) == frame


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**40])
def test_an_integer_of_any_size_stays_one(number: int) -> None:
    (back,) = read(frame_bytes({"n": [number]}, ANSWER_BYTES_MAX))["n"]
    assert (back, type(back)) == (number, int)


def test_a_frame_is_length_kind_and_json() -> None:
    assert frame_bytes({"a": 1}, 100) == b"\x00\x00\x00\x07\x00" + b'{"a":1}'


def test_a_frame_that_is_too_large_is_refused_on_both_sides() -> None:
    with pytest.raises(InvalidInput, match="too large"):
        frame_bytes({"a": "x" * 100}, 100)
    with pytest.raises(InvalidInput, match="too large"):
        body_length(struct.pack(">IB", 101, 0), 100)


def test_a_kind_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no frame of kind 7"):
        body_length(struct.pack(">IB", 1, 7), 100)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b"\xff", b"[" * 100_000])
@pytest.mark.parametrize("kind", [0, 1])
def test_a_body_that_is_no_object_is_refused(body: bytes, kind: int) -> None:
    with pytest.raises(InvalidInput):
        frame_of(body, kind)


def test_text_that_is_no_unicode_is_an_error_and_not_a_crash() -> None:
    with pytest.raises(InvalidInput):
        frame_bytes({"a": "\udc80"}, 100)


def test_items_come_back_in_order_in_frames_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "CHUNK_BYTES", 2_000)
    items = [[n, "x" * (n % 300)] for n in range(2_500)]
    made = list(chunks(items))
    assert [item for frame in made for item in read(frame)["items"]] == items
    assert max(map(len, made)) <= 2_000 + HEADER.size


def test_an_item_larger_than_a_chunk_goes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "CHUNK_BYTES", 100)
    items = ["a", "b" * 500, "c"]
    assert [item for frame in chunks(items) for item in read(frame)["items"]] == items


def test_an_item_larger_than_a_frame_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "ANSWER_BYTES_MAX", 100)
    with pytest.raises(InvalidInput, match="too large"):
        list(chunks(["b" * 500]))


def test_no_items_are_no_frames() -> None:
    assert list(chunks([])) == []
    assert json.loads(frame_bytes({}, 10)[HEADER.size :]) == {}
