"""What a shell remembers between two questions: its settings, parameters, the last statement, and what it can name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from forktrail_lab.shell.asking import Answer, Question, ask
from forktrail_lab.shell.catalog import Catalog, read_catalog, schema_catalog
from forktrail_lab.shell.face import Face
from forktrail_lab.shell.named import NamedQueries
from forktrail_lab.shell.parameters import used
from forktrail_lab.shell.preferences import Preferences
from forktrail_lab.shell.source import Source
from forktrail_lab.shell.suggestions import Vocabulary
from forktrail_projectors.graph.parameters import check_values
from forktrail_projectors.state import Value
from forktrail_schemas.errors import InvalidInput


@dataclass
class Session:
    """One shell on one run.

    Attributes:
        last: the statement that was answered last, with the values it was given.
        attempted: the statement that is, or was last, under way; what is wrong with it is shown in it.
    """

    source: Source
    face: Face
    named: NamedQueries
    preferences: Preferences = field(default_factory=Preferences)
    parameters: dict[str, Value] = field(default_factory=dict)
    catalog: Catalog = field(default_factory=schema_catalog)
    last: Question | None = None
    attempted: str = ""

    def question(self, cypher: str, given: Mapping[str, Value] | None = None) -> Question:
        """A statement under the session's bounds, with the parameters that it names.

        Args:
            given: values that win over the session's.

        Raises:
            InvalidInput: a parameter has no value, or one that the graph doesn't take.
        """
        self.attempted = cypher
        values = used(cypher, {**self.parameters, **(given or {})})
        check_values(cypher, values)
        return Question(cypher, values, self.preferences.rows_max, self.preferences.timeout_ms)

    def ask(self, question: Question) -> Answer:
        """Put a question and, once it is answered, remember it.

        Raises:
            ForktrailError, Cancelled: as `asking.ask`.
        """
        answer = ask(self.source, question)
        self.last = question
        return answer

    def last_question(self) -> Question:
        """The last question.

        Raises:
            InvalidInput: there was none yet.
        """
        if self.last is None:
            raise InvalidInput("nothing was asked yet", hint="give a query, or run one first")
        return self.last

    def learn_catalog(self) -> None:
        """Learn from the graph what there is to name.

        Raises:
            ForktrailError: the graph doesn't answer.
        """
        self.catalog = read_catalog(lambda cypher: self.source.query(cypher, {}, self.preferences.timeout_ms))

    def vocabulary(self) -> Vocabulary:
        """What completion draws from."""
        try:
            named = {name: query.summary for name, query in self.named.all().items()}
        except InvalidInput:  # a broken file is told of when a query of it is run
            named = {}
        return Vocabulary(self.catalog, tuple(self.parameters), named)
