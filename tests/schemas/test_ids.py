from __future__ import annotations

import hashlib
import re

import pytest

from forktrail_schemas.ids import derived_id, new_event_id, new_run_id, uuid7

V7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def test_a_uuid7_is_that_of_rfc_9562_appendix_a_6() -> None:
    # unix_ts_ms 0x017F22E279B0, rand_a 0xCC3, rand_b 0x18C4DC0C0C07398F
    random = bytes.fromhex("0cc318c4dc0c0c07398f")
    assert uuid7(0x017F22E279B0, random) == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


def test_version_and_variant_overwrite_what_is_random() -> None:
    assert uuid7(2**48 - 1, b"\xff" * 10) == "ffffffff-ffff-7fff-bfff-ffffffffffff"
    assert uuid7(0, b"\x00" * 10) == "00000000-0000-7000-8000-000000000000"


def test_a_later_uuid7_sorts_later() -> None:
    assert uuid7(1, b"\xff" * 10) < uuid7(2, b"\x00" * 10)


def test_fresh_ids_are_uuid7_and_differ() -> None:
    fresh = {new_event_id() for _ in range(100)}
    assert len(fresh) == 100
    assert all(V7.fullmatch(id) for id in fresh)
    assert re.fullmatch(r"run-[0-9a-f]{12}", new_run_id())


@pytest.mark.parametrize("kind", ["case", "report", "approval", "observation", "review", "finding", "goal"])
def test_a_derived_id_is_the_hash_of_kind_and_event_for_ever(kind: str) -> None:
    event_id = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
    digest = hashlib.sha256(b"forktrail/" + kind.encode() + b"/" + event_id.encode()).hexdigest()
    assert derived_id(kind, event_id) == f"{kind}-{digest[:20]}"


def test_a_derived_id_written_down_once_does_not_change() -> None:
    # printf '%s' forktrail/case/017f22e2-79b0-7cc3-98c4-dc0c0c07398f | sha256sum | cut -c-20
    assert derived_id("case", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f") == "case-7e4983d6d628574c9044"
