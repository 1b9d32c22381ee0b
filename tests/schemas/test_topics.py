from __future__ import annotations

from forktrail_schemas.topics import DEAD_LETTERS, DIRECTORY, SCHEMAS, run_of_topic, run_topic, run_topic_spec


def test_a_run_is_one_topic_of_one_partition_kept_for_ever() -> None:
    spec = run_topic_spec("demo")
    assert (spec.name, spec.partitions) == ("forktrail.run.demo", 1)
    assert spec.config["cleanup.policy"] == "delete"
    assert (spec.config["retention.ms"], spec.config["retention.bytes"]) == ("-1", "-1")
    assert spec.config["message.timestamp.type"] == "CreateTime"


def test_a_run_is_told_from_its_topic() -> None:
    assert run_of_topic(run_topic("demo")) == "demo"
    assert run_of_topic("forktrail.runs") is None


def test_the_directory_is_compacted_over_64_partitions() -> None:
    assert (DIRECTORY.name, DIRECTORY.partitions, DIRECTORY.config) == (
        "forktrail.runs",
        64,
        {"cleanup.policy": "compact"},
    )


def test_the_schemas_are_one_compacted_partition() -> None:
    assert (SCHEMAS.name, SCHEMAS.partitions) == ("forktrail.schemas", 1)
    assert SCHEMAS.config == {"cleanup.policy": "compact"}


def test_dead_letters_are_compacted_and_take_what_a_run_takes() -> None:
    assert (DEAD_LETTERS.name, DEAD_LETTERS.partitions) == ("forktrail.dead-letters", 16)
    assert DEAD_LETTERS.config["cleanup.policy"] == "compact"
    assert DEAD_LETTERS.config["max.message.bytes"] == run_topic_spec("demo").config["max.message.bytes"]
