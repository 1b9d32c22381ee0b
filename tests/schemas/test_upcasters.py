from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forktrail_schemas.catalog import class_of
from forktrail_schemas.compatibility.__main__ import EXAMPLES
from forktrail_schemas.events import ReportFiled, ReportFiledV1
from forktrail_schemas.record import Record
from forktrail_schemas.schema_types import short_name
from forktrail_schemas.upcasters import UPCASTERS
from forktrail_schemas.wire import build
from support.drawn_schemas import TEXTS, drawing
from support.samples import meta

CASES = [
    pytest.param(cls, case["before"], case["after"], id=f"{cls.__name__}-{index}")
    for cls in UPCASTERS
    for index, case in enumerate(json.loads((EXAMPLES / f"{short_name(cls.TYPE)}.v{cls.VERSION}.json").read_text()))
]


@pytest.mark.parametrize(("cls", "before", "after"), CASES)
def test_an_example_is_upcast_as_it_says(cls: type[Record], before: dict[str, Any], after: dict[str, Any]) -> None:
    head = {"meta": meta()}
    into = class_of(cls.TYPE, cls.VERSION + 1)
    assert build(into, UPCASTERS[cls](build(cls, head | before))) == build(into, head | after)


@drawing
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=600) | st.sampled_from(TEXTS["text"]))
@example("a" * 255 + " b")
@example("\x7f")
@example("\u2028\x85\x1f")
def test_every_report_of_version_1_is_one_of_version_2_and_loses_no_word(summary: str) -> None:
    report = build(ReportFiledV1, {"meta": meta(), "test_id": "t", "summary": summary})
    again = build(ReportFiled, UPCASTERS[ReportFiledV1](report))
    assert (again.meta, again.test_id) == (report.meta, report.test_id)
    assert summary in (again.summary, again.details)
    assert again == build(ReportFiled, UPCASTERS[ReportFiledV1](report))
