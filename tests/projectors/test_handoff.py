"""The handoff packet: that it holds whatever the run's story, and that nothing in it can be changed unseen."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from unittest.mock import patch

import pytest
import rfc8785

from forktrail_projectors.handoff.check import check_packet
from forktrail_projectors.handoff.packet import DIGEST_FIELD, Packet
from forktrail_schemas import events
from forktrail_schemas.errors import Corruption, ForktrailError, InvalidInput
from forktrail_schemas.events.base import Event
from forktrail_schemas.ids import derived_id, uuid7
from forktrail_schemas.signatures import SigningKey, verify
from forktrail_schemas.wire import decode, encode
from support.driver import Driver
from support.packets import (
    changed,
    containers,
    leaves,
    other_values,
    packet_of,
    pattern,
    sealed,
    some_of_each,
    tell_rich,
)
from support.story import ADMIN, EVIDENCE_SHA256, HOLDERS, OPERATOR, REVIEWER, RUNNER, Story

SEED = int(os.environ.get("FORKTRAIL_TEST_SEED") or random.randrange(2**32))
# What the file alone can't tell, as `check_packet` says it. Beside these, the words of reports and proposals.
NOT_TOLD = {
    "log.next_offset",
    "log.root",
    "state_digest",
    "records[].offset",
    "blocked[].reasons[] of other revisions",
}


@pytest.fixture(autouse=True, scope="module")
def _signatures_checked_once() -> Iterator[None]:
    """The same signature over the same bytes is checked a thousand times here."""
    with patch("forktrail_projectors.authority.verify", cache(verify)):
        yield


@pytest.fixture(scope="module")
def rich() -> Packet:
    story = Story("handed-over")
    tell_rich(story)
    return packet_of(story)


def refused(packet: Packet) -> str:
    """Why a packet doesn't hold although its digest is right; fails where it does."""
    with pytest.raises(ForktrailError) as caught:
        check_packet(sealed(packet))
    assert caught.value.exit_code in (2, 4)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def record_of(packet: Packet, cls: type[Event]) -> Iterator[int]:
    """Where a packet's records of one type stand."""
    for index, record in enumerate(packet["records"]):
        if isinstance(decode(base64.b64decode(record["value"])), cls):
            yield index


class TestWhatItSays:
    def test_a_rich_story_by_hand(self, rich: Packet) -> None:
        assert rich["summary"] == {
            "confirmed_current": 2,
            "negative_current": 1,
            "inconclusive_current": 1,
            "eligible_followups": 1,
        }
        findings = {finding["test_id"]: finding for finding in rich["findings"]}
        assert {test: (found["depth"], found["capabilities"]) for test, found in findings.items()} == {
            "root": (0, ["a"]),
            "mid": (1, ["b", "c"]),
        }
        assert findings["mid"]["rests_on"] == [findings["root"]["id"]]
        assert {(found["researcher"], found["approver"], found["reviewer"]) for found in findings.values()} == {
            ("rita", "olga", "ravi"),
            ("planner", "olga", "ravi"),
        }
        assert findings["root"]["evidence"]["sha256"] == EVIDENCE_SHA256
        assert [(path["test_id"], path["depth"]) for path in rich["candidate_paths"]] == [("next", 2)]
        assert rich["candidate_paths"][0]["support"] == sorted(
            [
                {"finding_id": findings["root"]["id"], "capability": "a"},
                {"finding_id": findings["mid"]["id"], "capability": "b"},
            ],
            key=lambda pair: pair["finding_id"],
        )
        assert {entry["test_id"]: entry["missing"] for entry in rich["blocked"]} == {
            "far": ["d"],
            "source-of-d": [],
            "withdrawn-too": ["e"],
        }
        far = next(entry["reasons"] for entry in rich["blocked"] if entry["test_id"] == "far")
        assert far[0] == "support missing: d (a finding of source-of-d would provide it)"
        assert far[1].startswith("  history, not current: finding-")
        assert rich["negative_observations"][0]["test_id"] == "closed"
        assert rich["inconclusive_observations"][0]["test_id"] == "odd"
        assert rich["active_revision"] == "r2"
        assert rich["goal"]["text"] == "find what breaks"

    def test_the_audit_counts_signatures_receipts_and_evidence(self, rich: Packet) -> None:
        # Of r2: root, side, mid, odd twice (one retried, so not current), closed.
        signed = sum(record["signature"] is not None for record in rich["records"])
        assert rich["audit"] == {
            "checked": signed + 2 * 5,
            "valid": True,
            "signatures": {"checked": signed, "valid": signed},
            "receipts": {"checked": 5, "valid": 5},
            "evidence_digests": {"checked": 5, "valid": 5},
        }

    def test_it_is_canonical_and_its_digest_can_be_made_again(self, rich: Packet) -> None:
        rest = {name: value for name, value in rich.items() if name != "packet_sha256"}
        assert hashlib.sha256(rfc8785.dumps(rest)).hexdigest() == rich["packet_sha256"]
        checked = check_packet(rfc8785.dumps(rich))
        assert checked.packet_sha256 == rich["packet_sha256"]
        assert checked.admin_key == ADMIN.key_id
        assert (checked.signatures, checked.receipts) == (
            rich["audit"]["signatures"]["checked"],
            rich["audit"]["receipts"]["checked"],
        )

    @pytest.mark.parametrize("number", range(6))
    def test_whatever_happened_in_a_run_its_packet_holds(self, number: int) -> None:
        seed = SEED + number
        print(f"FORKTRAIL_TEST_SEED={seed}")
        packet = packet_of(Driver(seed).tell(200))
        assert check_packet(sealed(packet)).summary == packet["summary"]


class TestTampering:
    def test_a_change_without_a_new_digest_is_seen(self, rich: Packet) -> None:
        with pytest.raises(Corruption, match="packet_sha256"):
            check_packet(rfc8785.dumps(changed(rich, ("active_revision",), "r3")))

    def test_no_value_can_be_changed_but_those_that_the_file_can_not_tell(self, rich: Packet) -> None:
        passed = set()
        named = ((self.told(rich, *leaf), *leaf) for leaf in leaves(rich))
        # Only an offset beside one that the packet leaves out can be another.
        for name, place, value in some_of_each(named, every="records[].offset"):
            for other in other_values(value):
                tampered = changed(rich, place, other)
                try:
                    check_packet(sealed(tampered))
                except (Corruption, InvalidInput):
                    continue
                if place != (DIGEST_FIELD,):  # `sealed` puts the right one back
                    passed.add(name)
        assert passed == NOT_TOLD

    def told(self, packet: Packet, place: tuple[str | int, ...], value: object) -> str:
        name = pattern(place)
        if name == "blocked[].reasons[]" and str(value).startswith("  history, not current: "):
            return f"{name} of other revisions"
        if name == "records[].value":
            return f"{name}: {type(decode(base64.b64decode(packet['records'][place[1]]['value']))).__name__}"
        return name

    def test_reports_are_unsigned_so_their_words_are_as_claimed(self, rich: Packet) -> None:
        index = next(record_of(rich, events.ReportFiled))
        event = decode(base64.b64decode(rich["records"][index]["value"]))
        assert isinstance(event, events.ReportFiled)
        reworded = encode(event.model_copy(update={"summary": "something else"}))
        check_packet(sealed(self.with_record(rich, index, {"value": base64.b64encode(reworded).decode()})))

    def test_a_reports_author_is_the_findings_researcher(self, rich: Packet) -> None:
        case = next(finding for finding in rich["findings"] if finding["test_id"] == "root")["case_id"]
        for index in record_of(rich, events.ReportFiled):
            event = decode(base64.b64decode(rich["records"][index]["value"]))
            assert isinstance(event, events.ReportFiled)
            if derived_id("case", event.meta.event_id) == case:
                actor = event.meta.actor.model_copy(update={"id": "mallory"})
                renamed = encode(event.model_copy(update={"meta": event.meta.model_copy(update={"actor": actor})}))
                tampered = self.with_record(rich, index, {"value": base64.b64encode(renamed).decode()})
                assert ".researcher is 'rita', and its records make it 'mallory'" in refused(tampered)

    def test_nothing_can_be_left_out_doubled_turned_round_or_added(self, rich: Packet) -> None:
        passed = set()
        for _, place, value in some_of_each((pattern(place), place, value) for place, value in containers(rich)):
            for other in self.rearranged(value):
                if not place or (isinstance(value, list) and other == value):
                    continue
                try:
                    check_packet(sealed(changed(rich, place, other)))
                except (Corruption, InvalidInput):
                    continue
                passed.add(pattern(place))
        # A line about other revisions may go or come twice.
        assert passed == {"blocked[].reasons"}

    def rearranged(self, value: Any) -> Iterator[object]:
        if isinstance(value, dict):
            yield value | {"more": 1}
            for name in value:
                yield {other: kept for other, kept in value.items() if other != name}
            return
        yield [*value, "more"]
        yield value[::-1]
        for index in range(len(value)):
            yield value[:index] + value[index + 1 :]
            yield [*value[:index], value[index], *value[index:]]

    def test_only_records_that_nothing_rests_on_can_be_left_out(self, rich: Packet) -> None:
        passed = []
        for index in range(len(rich["records"])):
            records = rich["records"][:index] + rich["records"][index + 1 :]
            left = self.recounted({**rich, "records": records})
            try:
                check_packet(sealed(left))
            except Corruption:
                continue
            passed.append(type(decode(base64.b64decode(rich["records"][index]["value"]))).__name__)
        # Nothing came of the setting, and nothing listed rests on the review of the attempt that was retried.
        assert passed == ["SettingChanged", "ReviewDecided"]

    def recounted(self, packet: Packet) -> Packet:
        """The packet with its audit set to how many signatures there are now."""
        signed = sum(record["signature"] is not None for record in packet["records"])
        receipts = packet["audit"]["receipts"]["checked"]
        audit = packet["audit"] | {
            "checked": signed + 2 * receipts,
            "signatures": {"checked": signed, "valid": signed},
        }
        return {**packet, "audit": audit}

    @pytest.mark.parametrize("part", ["receipt", "observation_id", "researcher", "title", "rests_on", "capabilities"])
    def test_findings_can_not_swap(self, part: str, rich: Packet) -> None:
        first, second = rich["findings"]
        assert first[part] != second[part]
        swapped = [{**first, part: second[part]}, {**second, part: first[part]}]
        assert f"$.findings[0].{part}" in refused({**rich, "findings": swapped})

    def test_a_finding_can_not_be_listed_twice_though_the_summary_counts_it(self, rich: Packet) -> None:
        doubled = {**rich, "findings": [*rich["findings"], rich["findings"][0]]}
        doubled["summary"] = rich["summary"] | {"confirmed_current": 3}
        assert "$.findings has 3 entries" in refused(doubled)

    @pytest.mark.parametrize(
        "cls",
        [
            events.ApprovalDecided,
            events.ReviewDecided,
            events.ObservationRecorded,
            events.TestStarted,
            events.TestRegistered,
            events.KeyRegistered,
            events.RunOpened,
            events.RevisionAdvanced,
        ],
    )
    def test_a_finding_needs_each_of_its_records(self, cls: type[Event], rich: Packet) -> None:
        left = [index for index in range(len(rich["records"])) if index not in set(record_of(rich, cls))]
        assert len(left) < len(rich["records"])
        told = refused(self.recounted({**rich, "records": [rich["records"][index] for index in left]}))
        assert told.startswith("packet_invalid: the packet doesn't hold: ")

    def test_a_withdrawn_finding_can_not_be_listed(self, rich: Packet) -> None:
        """The withdrawal lies in the packet, so what it withdrew isn't current."""
        fallen = next(
            event.case_id
            for event in (decode(base64.b64decode(record["value"])) for record in rich["records"])
            if isinstance(event, events.ReviewDecided)
            and event.case_id not in {finding["case_id"] for finding in rich["findings"]}
        )
        listed = {**rich["findings"][0], "case_id": fallen}
        assert "$.findings has 3 entries" in refused({**rich, "findings": [*rich["findings"], listed]})

    def test_a_person_can_not_sign_in_anothers_name(self, rich: Packet) -> None:
        index = next(record_of(rich, events.ReviewDecided))
        event = decode(base64.b64decode(rich["records"][index]["value"]))
        assert isinstance(event, events.ReviewDecided)
        forged = self.signed_by(OPERATOR, event)
        assert "role_missing" in refused(self.with_record(rich, index, forged))
        renamed = event.model_copy(
            update={"meta": event.meta.model_copy(update={"actor": event.meta.actor.model_copy(update={"id": "bob"})})}
        )
        assert "actor_mismatch" in refused(self.with_record(rich, index, self.signed_by(REVIEWER, renamed)))

    def test_a_signed_record_can_not_become_another(self, rich: Packet) -> None:
        index = next(record_of(rich, events.ObservationRecorded))
        event = decode(base64.b64decode(rich["records"][index]["value"]))
        assert isinstance(event, events.ObservationRecorded)
        other = self.signed_by(RUNNER, event.model_copy(update={"outcome": "not_reproduced"}))
        assert "receipt_mismatch" in refused(self.with_record(rich, index, other))

    def signed_by(self, key: SigningKey, event: Event) -> dict[str, object]:
        value = encode(event)
        return {"value": base64.b64encode(value).decode(), "signature": key.sign(value).to_json()}

    def with_record(self, packet: Packet, index: int, fields: dict[str, object]) -> Packet:
        records = [*packet["records"]]
        records[index] = records[index] | fields
        return {**packet, "records": records}

    def test_a_record_of_another_run_is_refused(self, rich: Packet) -> None:
        event = Story("elsewhere").event(
            events.ReportFiled, event_id=uuid7(1, b"another   "), test_id="root", summary="x"
        )
        packed = {"offset": 10_000, "value": base64.b64encode(encode(event)).decode(), "signature": None}
        tampered = {**rich, "records": [*rich["records"], packed]}
        tampered["log"] = rich["log"] | {"next_offset": 10_001}
        assert "wrong_run" in refused(tampered)

    def test_the_same_signature_written_otherwise_is_refused(self, rich: Packet) -> None:
        """Base64 with stray bits and JSON with spaces would give one signature many texts."""
        index = next(record_of(rich, events.RunOpened))
        loose = json.dumps(json.loads(rich["records"][index]["signature"]))
        assert "is not written as a packet writes it" in refused(self.with_record(rich, index, {"signature": loose}))

    def test_a_packet_whose_audit_failed_does_not_hold(self, rich: Packet) -> None:
        audit = rich["audit"] | {"valid": False, "evidence_digests": {"checked": 5, "valid": 4}}
        assert "$.audit" in refused({**rich, "audit": audit})

    def test_holders_are_the_people_of_the_story(self, rich: Packet) -> None:
        assert {key["key_id"]: key["holder"] for key in rich["keys"]} == HOLDERS


NO_PACKETS: dict[str, bytes] = {
    "nothing": b"",
    "no json": b"packet",
    "not utf-8": b"\xff\xfe{}",
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "an empty object": b"{}",
    "another format": b'{"format":"forktrail.handoff/0"}',
    "a format that is a list": b'{"format":["forktrail.handoff/1"]}',
    "not a number": b'{"format":NaN}',
    "a number too large": b'{"format":1' + b"0" * 400 + b"}",
    "a number of 5,000 digits": b"1" * 5_000,
    "a lone surrogate": b'{"format":"\\ud800"}',
    "deep": b"[" * 50_000_000,
    "deep and closed": b"[" * 100_000 + b"]" * 100_000,
    "another fold version": b'{"fold_version":99,"format":"forktrail.handoff/1"}',
}


@pytest.mark.parametrize("name", NO_PACKETS)
def test_what_is_no_packet_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_packet(NO_PACKETS[name])
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


MISSHAPEN: dict[str, Callable[[Packet], object]] = {
    "no records": lambda packet: {**packet, "records": []},
    "records that are an object": lambda packet: {**packet, "records": {}},
    "a record that is a number": lambda packet: {**packet, "records": [1]},
    "a record without a value": lambda packet: {**packet, "records": [{"offset": 0, "signature": None}]},
    "a value that is no base64": lambda packet: {
        **packet,
        "records": [{"offset": 0, "signature": None, "value": "ä"}],
    },
    "findings that are null": lambda packet: {**packet, "findings": None},
    "a log that is a list": lambda packet: {**packet, "log": []},
    "keys of another sort": lambda packet: {**packet, "keys": [[]]},
    "blocked that is a number": lambda packet: {**packet, "blocked": 3},
    "blocked with numbers in it": lambda packet: {**packet, "blocked": [3]},
}


@pytest.mark.parametrize("name", MISSHAPEN)
def test_a_packet_of_the_wrong_shape_does_not_hold(name: str, rich: Packet) -> None:
    misshapen = MISSHAPEN[name](rich)
    assert isinstance(misshapen, dict)
    assert "packet_invalid" in refused(misshapen)


def test_a_packet_in_other_spacing_does_not_hold(rich: Packet) -> None:
    for data in (json.dumps(rich).encode(), rfc8785.dumps(rich) + b"\n\n", b" " + rfc8785.dumps(rich)):
        with pytest.raises(Corruption, match="canonical"):
            check_packet(data)
    check_packet(rfc8785.dumps(rich) + b"\n")


def test_a_key_given_twice_does_not_hold(rich: Packet) -> None:
    data = rfc8785.dumps(rich).replace(b'"active_revision":', b'"active_revision":"r1","active_revision":', 1)
    with pytest.raises(Corruption, match="canonical"):
        check_packet(data)
