from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from forktrail_projectors.merkle import EMPTY_ROOT, grow, record_hash, root
from forktrail_projectors.record import LogRecord

# The reference tests of Certificate Transparency (merkle_tree_test.cc): data of eight leaves, root for each size.
LEAVES = [
    bytes.fromhex(data)
    for data in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def leaf_hash(data: bytes) -> str:
    return hashlib.sha256(b"\x00" + data).hexdigest()


def tree_hash(leaves: list[str]) -> str:
    """MTH of RFC 6962, section 2.1, as it is written there."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    left, right = bytes.fromhex(tree_hash(leaves[:split])), bytes.fromhex(tree_hash(leaves[split:]))
    return hashlib.sha256(b"\x01" + left + right).hexdigest()


def frontier_of(leaves: list[str]) -> tuple[str, ...]:
    return grow((), 0, map(bytes.fromhex, leaves))


def test_the_empty_trees_root_is_that_of_rfc_6962() -> None:
    assert root(()) == EMPTY_ROOT == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize("size", range(1, 9))
def test_roots_are_those_of_certificate_transparencys_reference_tests(size: int) -> None:
    assert root(frontier_of([leaf_hash(data) for data in LEAVES[:size]])) == ROOTS[size - 1]


def test_roots_of_all_sizes_to_130_are_those_of_the_definition() -> None:
    leaves = [leaf_hash(bytes([number])) for number in range(130)]
    frontier: tuple[str, ...] = ()
    for size, leaf in enumerate(leaves):
        frontier = grow(frontier, size, [bytes.fromhex(leaf)])
        assert frontier == frontier_of(leaves[: size + 1])
        assert len(frontier) == (size + 1).bit_count()
        assert root(frontier) == tree_hash(leaves[: size + 1]), size + 1


RECORD = LogRecord(5, 1_700_000_000_000, b"key", b"value", (("name", b"one"), ("other", b"two")))


def test_a_leaf_is_the_hash_of_length_prefixed_parts() -> None:
    # Worked by hand: 0x00, time as 8 bytes, then each part after its length as 4 bytes.
    data = (
        bytes.fromhex("00 0000018bcfe56800")
        + b"\0\0\0\3key"
        + b"\0\0\0\2"
        + b"\0\0\0\4name\0\0\0\3one"
        + b"\0\0\0\5other\0\0\0\3two"
        + b"\0\0\0\5value"
    )
    assert record_hash(RECORD) == hashlib.sha256(data).hexdigest()


def test_a_leaf_holds_no_offset() -> None:
    assert record_hash(replace(RECORD, offset=9)) == record_hash(RECORD)


@pytest.mark.parametrize(
    "other",
    [
        replace(RECORD, timestamp_ms=RECORD.timestamp_ms + 1),
        replace(RECORD, timestamp_ms=-1),
        replace(RECORD, key=b"keyv", value=b"alue"),
        replace(RECORD, key=b"ke", value=b"yvalue"),
        replace(RECORD, key=None),
        replace(RECORD, key=b""),
        replace(RECORD, value=None),
        replace(RECORD, value=b""),
        replace(RECORD, headers=()),
        replace(RECORD, headers=RECORD.headers[::-1]),
        replace(RECORD, headers=RECORD.headers[:1]),
        replace(RECORD, headers=(*RECORD.headers, ("", b""))),
        replace(RECORD, headers=(("nameo", b"ne"), ("other", b"two"))),
        replace(RECORD, headers=(("Name", b"one"), ("other", b"two"))),
        replace(RECORD, headers=(("name", b"onf"), ("other", b"two"))),
        replace(RECORD, headers=(("name", None), ("other", b"two"))),
        replace(RECORD, headers=(("name", b""), ("other", b"two"))),
        replace(RECORD, headers=(("name", b"one\0\0\0\5other\0\0\0\3two"),)),
    ],
    ids=lambda record: ascii((record.key, record.value, record.headers))[:60],
)
def test_a_byte_elsewhere_makes_another_leaf(other: LogRecord) -> None:
    assert record_hash(other) != record_hash(RECORD)


def test_nothing_and_empty_are_told_apart() -> None:
    bare = LogRecord(0, 0, None, None)
    variants = [bare, replace(bare, key=b""), replace(bare, value=b""), replace(bare, headers=(("", None),))]
    variants += [replace(bare, headers=(("", b""),)), replace(bare, key=b"", value=b"")]
    assert len({record_hash(record) for record in variants}) == len(variants)
