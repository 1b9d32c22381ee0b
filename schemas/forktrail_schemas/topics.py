"""Topic names and how each topic is made."""

from __future__ import annotations

from dataclasses import dataclass

RUN_TOPIC_PREFIX = "forktrail.run."
RECORD_BYTES_MAX = 4_194_304


@dataclass(frozen=True)
class TopicSpec:
    """A topic as it should be made."""

    name: str
    partitions: int
    config: dict[str, str]


def run_topic(run: str) -> str:
    """The topic of a run."""
    return RUN_TOPIC_PREFIX + run


def run_of_topic(topic: str) -> str | None:
    """The run of a topic, or None where it isn't a run's."""
    return topic.removeprefix(RUN_TOPIC_PREFIX) if topic.startswith(RUN_TOPIC_PREFIX) else None


def run_topic_spec(run: str) -> TopicSpec:
    """One partition, kept for ever, times as the writers gave them."""
    return TopicSpec(
        run_topic(run),
        1,
        {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "retention.bytes": "-1",
            "message.timestamp.type": "CreateTime",
            "message.timestamp.after.max.ms": str(2**63 - 1),  # a writer's clock may be ahead
            "max.message.bytes": str(RECORD_BYTES_MAX),
        },
    )


# The directory of runs: the last announcement of each run id, for ever.
DIRECTORY = TopicSpec("forktrail.runs", 64, {"cleanup.policy": "compact"})

# Schemas by their SHA-256, for tools that decode records of ours; nothing of ours depends on it.
SCHEMAS = TopicSpec("forktrail.schemas", 1, {"cleanup.policy": "compact"})

# Records that a run refused for what they are, and their acknowledgements: the last of each key, for ever.
DEAD_LETTERS = TopicSpec(
    "forktrail.dead-letters", 16, {"cleanup.policy": "compact", "max.message.bytes": str(RECORD_BYTES_MAX)}
)
