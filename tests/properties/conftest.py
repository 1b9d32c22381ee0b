"""How many examples the property tests draw, and from which seed.

FORKTRAIL_PROPERTIES=long draws many more. A failure prints its seed; FORKTRAIL_TEST_SEED runs it again.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, is_hypothesis_test, settings

from support.rows import SEED

# A stream takes longer to fold than hypothesis thinks an example may take; nothing here waits, so no deadline either.
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
PROFILES = {"short": 20, "long": 500}


def pytest_configure() -> None:
    """Load the profile before the tests are collected: each takes its own number of examples from it."""
    for name, examples in PROFILES.items():
        settings.register_profile(
            name,
            max_examples=examples,
            deadline=None,
            database=None,
            print_blob=True,
            suppress_health_check=SLOW,
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
        )
    settings.load_profile(os.environ.get("FORKTRAIL_PROPERTIES", "short"))


def pytest_itemcollected(item: pytest.Item) -> None:
    """Draw from the session's seed."""
    test = getattr(item, "obj", None)
    if callable(test) and is_hypothesis_test(test):
        hypothesis.seed(SEED)(test)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Print the seed with a failure."""
    report = yield
    if report.failed:
        report.sections.append(("seed", f"FORKTRAIL_TEST_SEED={SEED}"))
    return report
