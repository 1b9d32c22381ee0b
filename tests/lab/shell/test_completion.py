"""What can come next, at every place of a statement and of a command. No broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from forktrail_lab.shell.completer import ShellCompleter, suggestions
from forktrail_lab.shell.matching import fitting
from forktrail_lab.shell.suggestions import Vocabulary
from forktrail_projectors.graph.declared_tables import BUILT_IN

VOCABULARY = Vocabulary(parameters=("status", "depth"), named={"findings": "what stands", "mine": "yours"})
STAMPS = ["created_event", "created_offset", "changed_event", "changed_offset"]
BUDGET = ["id", "limit", "used", "remainder", "exhausted", *STAMPS]


def offered(text: str, after: str = "") -> list[str]:
    """The texts that could be inserted at the end of `text`."""
    return [suggestion.text for suggestion in suggestions(text, after, VOCABULARY)]


def completed(text: str, after: str = "") -> str:
    """The text once the first suggestion is taken."""
    first = suggestions(text, after, VOCABULARY)[0]
    return text[: len(text) - first.replaced] + first.text


class TestLabels:
    @pytest.mark.parametrize(
        "text", ["MATCH (:", "MATCH (x:", "MATCH (x :", "MATCH (a)-[]->(x:", "MATCH (a:Asset|", "MATCH (a:Asset:"]
    )
    def test_all_come_after_a_colon_in_a_node(self, text: str) -> None:
        assert {name.strip("`") for name in offered(text)} == set(BUILT_IN.nodes)

    def test_one_that_is_begun_comes_first(self) -> None:
        assert completed("MATCH (f:Fin") == "MATCH (f:Finding"
        assert completed("MATCH (f:fin") == "MATCH (f:Finding"
        assert completed("MATCH (t:tc") == "MATCH (t:TestCase" or "TestCase" in offered("MATCH (t:tca")

    def test_a_word_of_the_language_comes_in_backticks(self) -> None:
        assert completed("MATCH (c:Cas") == "MATCH (c:`Case`"
        assert completed("MATCH (c:`Cas") == "MATCH (c:`Case`"
        assert completed("MATCH (f:`Find") == "MATCH (f:`Finding`"

    def test_the_name_of_a_table_is_completed_for_a_procedure(self) -> None:
        assert completed("CALL table_info('Find") == "CALL table_info('Finding'"
        assert offered("CALL show_connection('")[0] == "CAUSED'"
        assert offered("RETURN 'Find") == []


class TestRelations:
    @pytest.mark.parametrize("text", ["MATCH (a)-[:", "MATCH (a)<-[r:", "MATCH (a)-[r:CAUSED|"])
    def test_all_come_after_a_colon_in_a_relation(self, text: str) -> None:
        assert offered(text) == list(BUILT_IN.edges)

    def test_one_that_is_begun_comes_first_also_by_a_part_of_it(self) -> None:
        assert completed("MATCH (a)-[:req") == "MATCH (a)-[:REQUIRES"
        assert completed("MATCH (a)-[r:on") == "MATCH (a)-[r:RESTS_ON"


class TestProperties:
    def test_those_of_the_variables_label(self) -> None:
        assert offered("MATCH (b:Budget) RETURN b.") == BUDGET
        assert completed("MATCH (f:Finding) WHERE f.wi") == "MATCH (f:Finding) WHERE f.withdrawn"

    def test_those_of_a_relation(self) -> None:
        assert offered("MATCH ()-[r:REQUIRES]->() RETURN r.") == STAMPS[:2]

    def test_the_label_may_stand_in_backticks_or_further_on(self) -> None:
        assert "retried" in offered("MATCH (c:`Case`) RETURN c.")
        assert offered("RETURN b.", " MATCH (b:Budget)") == BUDGET

    def test_a_variable_is_known_by_its_first_mention_and_by_another_name(self) -> None:
        assert offered("MATCH (b:Budget) MATCH (b) RETURN b.") == BUDGET
        assert offered("MATCH (b:Budget) WITH b AS c WHERE c.") == BUDGET

    def test_a_node_without_a_label_has_that_to_which_its_relation_leads(self) -> None:
        assert offered("MATCH (t:TestCase)-[:TARGETS]->(a) RETURN a.") == ["id", *STAMPS]
        assert offered("MATCH (f:Finding)<-[:ESTABLISHES]-(r) RETURN r.")[:3] == ["id", "case_id", "observation"]
        assert offered("MATCH (r)-[:ESTABLISHES]->(f:Finding) RETURN r.")[:3] == ["id", "case_id", "observation"]
        assert "impact" in offered("MATCH (x)-[:FOUND_IN]->(c:`Case`) RETURN x.")

    def test_an_unknown_variable_has_all_there_are(self) -> None:
        every = {column for table in BUILT_IN.nodes.values() for column in table.columns}
        every |= {column for relation in BUILT_IN.edges.values() for column in relation.columns}
        assert set(offered("MATCH (x) RETURN x.")) == set(offered("RETURN nowhere.")) == every

    def test_of_several_labels_all_come(self) -> None:
        found = offered("MATCH (x:Budget|Setting) RETURN x.")
        assert {"limit", "value"} <= set(found)
        assert "impact" not in found

    def test_the_keys_of_a_pattern_come_with_their_colon(self) -> None:
        assert completed("MATCH (f:Finding {wi") == "MATCH (f:Finding {withdrawn: "
        assert offered("MATCH (b:Budget {id: 'x', ")[:2] == ["id: ", "limit: "]
        assert offered("MATCH (b:Budget {li", "}) RETURN b") == ["limit: "]

    def test_a_map_of_values_is_no_pattern(self) -> None:
        assert "withdrawn: " not in offered("MATCH (f:Finding) RETURN {wi")


class TestWords:
    def test_a_statement_begins_with_what_reads(self) -> None:
        assert offered("") == ["MATCH", "OPTIONAL MATCH", "RETURN", "UNWIND", "WITH", "CALL", "EXPLAIN", "PROFILE"]
        assert completed("ma") == "match"
        assert completed("MA") == "MATCH"
        assert completed("RETURN 1; UN") == "RETURN 1; UNWIND"

    def test_variables_come_before_functions_and_keywords(self) -> None:
        assert offered("MATCH (count_me:Finding) RETURN cou")[0] == "count_me"
        assert offered("MATCH (f:Finding) RETURN ")[0] == "f"

    def test_functions_open_their_bracket(self) -> None:
        assert "collect(" in offered("MATCH (f:Finding) RETURN coll")
        assert "starts_with(" in offered("MATCH (f:Finding) WHERE star")

    def test_keywords_in_the_case_in_which_they_are_begun(self) -> None:
        assert "ORDER BY" in offered("MATCH (f) RETURN f OR")
        assert "order by" in offered("MATCH (f) RETURN f or")

    def test_parameters_come_after_a_dollar(self) -> None:
        assert offered("MATCH (c) WHERE c.status = $") == ["status", "depth"]
        assert completed("MATCH (c) WHERE c.status = $st") == "MATCH (c) WHERE c.status = $status"

    def test_procedures_come_after_call(self) -> None:
        assert completed("CALL show_t") == "CALL show_tables()"

    def test_a_variable_may_be_named_anew_in_a_pattern(self) -> None:
        assert offered("MATCH (f:Finding) MATCH (") == ["f"]

    def test_nothing_comes_in_a_string(self) -> None:
        assert offered("MATCH (f) WHERE f.id = 'MATCH (x:") == []


class TestCommands:
    def test_their_names(self) -> None:
        assert completed(":sch") == ":schema"
        assert ":export" in offered(":")

    def test_what_each_takes(self) -> None:
        assert completed(":schema Find") == ":schema Finding"
        assert completed(":run fin") == ":run findings"
        assert offered(":run findings ") == []
        assert offered(":expand ") == ["auto", "on", "off"]
        assert completed(":timing o") == ":timing on"
        assert completed(":param st") == ":param status="
        assert completed(":help wat") == ":help watch"
        assert completed(":events --f") == ":events --follow"
        assert offered(":quit ") == []

    @pytest.mark.parametrize("before", [":watch ", ":watch 2 ", ":name mine ", ":export --replace a.csv "])
    def test_the_query_that_one_takes(self, before: str) -> None:
        assert completed(f"{before}MATCH (f:Fin") == f"{before}MATCH (f:Finding"
        assert completed(f"{before}MA") == f"{before}MATCH"

    def test_files_to_export_to(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "reports").mkdir()
        (tmp_path / "reports" / "old.csv").touch()
        (tmp_path / "reports" / "notes.txt").touch()
        (tmp_path / "rows.json").touch()
        (tmp_path / ".hidden.csv").touch()
        assert offered(":export r") == ["reports/", "rows.json"]
        assert completed(":export reports/o") == ":export reports/old.csv"
        assert offered(":export reports/") == ["old.csv"]
        assert offered(":export nowhere/") == []


class TestMenu:
    """What opens by itself while one types, and what only with Tab."""

    def menu(self, text: str, *, tab: bool = False) -> list[str]:
        completer = ShellCompleter(lambda: VOCABULARY)
        event = CompleteEvent(text_inserted=not tab, completion_requested=tab)
        return [completion.text for completion in completer.get_completions(Document(text), event)]

    def test_nothing_opens_before_a_name_is_begun(self) -> None:
        assert self.menu("") == self.menu("MATCH ") == self.menu("MATCH (f:Finding) RETURN f.id, ") == []
        assert self.menu("MATCH (f:Finding) RETURN ", tab=True)[0] == "f"

    def test_names_open_after_their_sign(self) -> None:
        assert self.menu("MATCH (:")
        assert self.menu("MATCH (b:Budget) RETURN b.")
        assert self.menu(":")

    def test_a_keyword_that_stands_there_already_opens_nothing(self) -> None:
        assert "LIMIT" not in self.menu("MATCH (f) RETURN f LIMIT")

    def test_the_menu_says_of_what_kind_each_is(self) -> None:
        completer = ShellCompleter(lambda: VOCABULARY)
        first, *_ = completer.get_completions(Document("MATCH (f:Finding)-[:ENAB"), CompleteEvent())
        assert (first.display_text, first.display_meta_text) == ("ENABLES", "relation · Finding → Capability")


def test_names_fit_by_start_then_part_then_middle_then_letters_in_order() -> None:
    names = ["pretend", "end_node", "the_end", "extended", "elnad"]
    assert fitting("end", names, str) == ["end_node", "the_end", "extended", "pretend", "elnad"]
    assert fitting("elad", names, str) == ["elnad"]
    assert fitting("ed", names, str) == ["extended"]  # two letters that stand apart fit too much
