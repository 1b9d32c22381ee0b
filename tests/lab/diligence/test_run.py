"""A run of the diligence pack: what it comes to, its strict replay, and that nothing depends on order or chance."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from forktrail_behaviors import certificate
from forktrail_behaviors.testing import Kit, simulate
from forktrail_behaviors.testing.kit import ADMIN, RUN
from forktrail_lab.diligence import PACK
from forktrail_lab.diligence.counts import bases_of
from forktrail_lab.diligence.tools import SHIPPED_DOCUMENTS
from forktrail_projectors.state import EdgeKey
from support.diligence import ThreadedKit, counted, derived, played, scenario, strictly
from support.rows import SEED

# Issue 5, the first thing that its "Done when" asks for.
EXPECTED = {
    "company": 3,
    "question": 24,
    "document": 9,
    "claim": 25,
    "evidence": 25,
    "contradiction": 1,
    "risk": 3,
    "memo": 3,
    "addresses": 25,
    "derived_from": 25,
    "supports": 25,
    "contradicts": 1,
    "model calls": 103,
    "tool calls": 48,
}


@pytest.fixture(scope="module")
def run() -> Kit:
    return played()


def test_it_comes_to_what_the_issue_says(run: Kit) -> None:
    assert counted(run) == EXPECTED


def test_the_counts_follow_from_the_fixture_files_alone(run: Kit) -> None:
    assert derived(SHIPPED_DOCUMENTS) == counted(run)


def test_every_memo_is_linked_to_the_claims_of_its_company(run: Kit) -> None:
    graph, _ = run.folded()
    assert sorted(bases_of(graph.rows()).values()) == [7, 9, 9]
    about = {row["id"]: row["about"] for kind in ("Memo", "Question") for row in run.objects(kind)}
    asked = {row["id"]: about[row["addresses"]] for row in run.objects("Claim")}
    links = [key for key, _ in graph.rows() if isinstance(key, EdgeKey) and key.table == "BASED_ON"]
    assert all(about[str(link.source.id)] == asked[str(link.target.id)] for link in links)
    assert len(links) == len({link.target.id for link in links}) == 25


def test_every_claim_has_its_words_in_a_document_that_was_read(run: Kit) -> None:
    texts = {path.name: " ".join(path.read_text().split()) for path in SHIPPED_DOCUMENTS.glob("*.txt")}
    documents = {row["id"]: row["name"] for row in run.objects("Document")}
    claims = {row["id"]: documents[row["derived_from"]] for row in run.objects("Claim")}
    for evidence in run.objects("Evidence"):
        assert str(evidence["quote"]) in texts[str(claims.pop(evidence["supports"]))]
    assert claims == {}


def test_a_question_without_a_finding_says_so_and_has_no_claim(run: Kit) -> None:
    addressed = {row["addresses"] for row in run.objects("Claim")}
    status = Counter(str(row["status"]) for row in run.objects("Question"))
    assert status == {"answered": 19, "no finding": 5}
    for question in run.objects("Question"):
        assert (question["id"] in addressed) == (question["status"] == "answered")
        assert (question["note"] is None) == (question["status"] == "answered")


def test_what_is_void_is_a_second_making_of_the_same_alone(run: Kit) -> None:
    reasons = Counter(verdict.reason for verdict in run.void())
    # 24 documents were fetched and 9 there are; the contradiction and its relation are found from both sides.
    assert reasons == {"object_exists": 24 - 9 + 1, "relation_exists": 1}


def test_no_request_holds_an_id_or_a_time(run: Kit) -> None:
    graph, _ = run.folded()
    ids = [str(key.id) for key, _ in graph.rows() if not isinstance(key, EdgeKey) and len(str(key.id)) > 16]
    asked = "\n".join(str(row["request"]) for kind in ("model", "tool") for row in run.calls_of(kind))
    assert asked.count("Brindlecote Foods") > 30
    assert [id for id in ids if id in asked] == []


def test_strict_replay_with_no_model_and_no_tool_finds_no_difference_and_is_certified(run: Kit) -> None:
    replayed, reactor = strictly(run, replace(PACK, models=()))
    assert replayed.divergences == []
    assert (replayed.unwritten, replayed.changed) == (0, {})
    assert replayed.executions == 3 + 24 + 3 + 25 + 3
    told = certificate.statement(RUN, replayed, reactor.registrations.all())
    text = certificate.signed(told, ADMIN)
    found = certificate.read_certificate(text, {ADMIN.key_id: ADMIN.public_key})
    again, _ = strictly(run)
    assert certificate.differences(found.statement, RUN, again.log_root, again.state_digest) == []


def test_with_clock_and_ids_pinned_two_runs_give_the_same_values_byte_for_byte(run: Kit) -> None:
    other = played()
    assert [record.value for record in other.log.records] == [record.value for record in run.log.records]


@pytest.mark.parametrize("round", range(3))
def test_answers_in_any_order_come_to_the_same(run: Kit, round: int) -> None:
    other = played(dice=random.Random(SEED + round))
    assert other.content_digest() == run.content_digest(), f"seed {SEED + round}"
    assert [record.value for record in other.log.records] != [record.value for record in run.log.records]


def test_eight_effects_at_once_come_to_the_same(run: Kit) -> None:
    kit = ThreadedKit(PACK)
    scenario(kit)
    assert counted(kit) == EXPECTED
    assert kit.content_digest() == run.content_digest()
    assert strictly(kit)[0].divergences == []


def test_kills_and_second_deliveries_come_to_the_same() -> None:
    # One company: a worker that is killed every few writes folds the log anew each time.
    tried = simulate(PACK, lambda kit: scenario(kit, ["Harrowmere Robotics"]), seeds=[SEED])
    assert tried == 4


def test_names_of_companies_in_another_order_come_to_the_same(run: Kit) -> None:
    names = ["Lumenfeld Energy", "Brindlecote Foods", "Harrowmere Robotics"]
    assert played(names=names).content_digest() == run.content_digest()
