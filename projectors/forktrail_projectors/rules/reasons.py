"""What each reason code says in words, for people: the sentence goes before the verdict's detail."""

from __future__ import annotations

IN_WORDS: dict[str, str] = {
    # What can't be read, or breaks its schema.
    "invalid_data": "its data breaks its schema",
    "no_rule": "no rule handles this type",
    "no_value": "the record has no value",
    "not_avro": "the value is not an Avro single-object encoding",
    "schema_incompatible": "its declared schema can't be read as the type of that name",
    "trailing_bytes": "bytes are left over after the event",
    "truncated": "the value ends or breaks inside the event",
    "unknown_schema": "its schema is not known",
    # Identity and place.
    "header_mismatch": "a header contradicts the value",
    "headers_unreadable": "the name of a header is not UTF-8",
    "id_collision": "what it would make is there already",
    "id_reused": "its id is taken by another event",
    "run_already_open": "the run is open already",
    "run_closed": "the run is closed",
    "run_not_open": "the run is not open yet",
    "wrong_run": "it was written for another run",
    # Who says it.
    "actor_mismatch": "the key doesn't speak for this actor",
    "bad_signature": "its signature doesn't hold",
    "key_revoked": "its key was revoked",
    "not_a_person": "only a person may decide this",
    "role_missing": "its key lacks the role",
    "unknown_key": "the key is not registered in this run",
    "unsigned": "it needs a signature",
    # Keys, settings, budgets, tests.
    "already_revoked": "the key was revoked before",
    "bad_value": "the setting doesn't take this value",
    "circular_test": "the test would enable what it requires",
    "key_exists": "the key is registered already, and a key's roles can't be changed: register another key",
    "key_id_mismatch": "the key id is not that of the public key",
    "own_key": "a key can't revoke itself",
    "bad_schema": "the text is no schema that can be declared",
    "fingerprint_mismatch": "the fingerprint is not that of the text",
    "fingerprint_taken": "another schema has this fingerprint",
    "schema_built_in": "the schema is built in",
    "schema_exists": "the schema is declared already",
    "test_exists": "the test is registered already",
    "unknown_budget": "there is no such budget",
    "unknown_setting": "there is no such setting",
    # Cases.
    "already_decided": "the case was decided before",
    "already_observed": "the case has its observation",
    "already_retried": "the case was released for a retry before",
    "already_reviewed": "the observation was reviewed before",
    "already_started": "a runner took the case before",
    "already_withdrawn": "the finding was withdrawn before",
    "approval_mismatch": "the case was approved by another decision",
    "bounds_exceeded": "more requests were sent than the test may send",
    "budget_exhausted": "it would pass a budget",
    "case_exists": "the test has a case in this revision",
    "case_mismatch": "the case is of another test or revision",
    "interrupted_outcome": "an interrupted test has no outcome but inconclusive",
    "no_observation": "the case has no observation yet",
    "not_approved": "the case is not approved",
    "not_inconclusive": "only an inconclusive attempt can be retried",
    "not_started": "no runner has started the case",
    "observation_mismatch": "the case has another observation",
    "overtaken": "another case was opened since it was decided on",
    "receipt_mismatch": "its receipt doesn't hold",
    "revision_conflict": "another revision is active than it says",
    "revision_exists": "there was such a revision already, and there is no way back",
    "revision_not_active": "its revision is not the active one",
    "same_person": "who approved a case may not review it",
    "support_mismatch": "it names findings that don't meet a requirement now",
    "support_missing": "nothing current provides what the test requires",
    "unknown_case": "there is no such case",
    "unknown_finding": "there is no such finding",
    "unknown_request": "there is no such request",
    "unknown_test": "no such test is registered",
    "wrong_runner": "another runner took the case",
}


def in_words(reason: str, detail: str) -> str:
    """A verdict's reason and detail as one clause."""
    words = IN_WORDS.get(reason, reason)
    return f"{words}: {detail}" if detail else words
