"""Which variables a MATCH binds, with their labels, and which it takes from the MATCH around it."""

from __future__ import annotations

from collections.abc import Sequence

from forktrail_behaviors.pattern.tokens import Token, refused
from forktrail_behaviors.pattern.tree import Step

ANONYMOUS = "#"  # begins the names of nodes without one; no name in a text can


class Scope:
    """The variables of one MATCH.

    Attributes:
        named: the named nodes that it mentions, in the order of first mention.
    """

    def __init__(self, text: str, parent: Scope | None) -> None:
        self.parent = parent
        self.named: list[str] = []
        self._text = text
        self._mentioned: dict[str, int] = {}
        self._labels: dict[str, str] = {}
        self._relations: set[str] = set()

    def mention(self, name: Token | None, label: Token | None, position: int) -> str:
        """A node, as it stands in the text; returns its variable."""
        variable = name.text if name else f"{ANONYMOUS}{position}"
        if self.is_relation(variable):
            raise refused(self._text, position, f"{variable} is a relation already", "give the node a name of its own")
        if name and variable not in self.named:
            self.named.append(variable)
        self._mentioned.setdefault(variable, position)
        if label is not None:
            known = self._labels.get(variable) or (self.parent and self.parent.label(variable))
            if known and known != label.text:
                raise refused(self._text, label.position, f"{variable} is a {known} already", "a node has one label")
            self._labels[variable] = label.text
        return variable

    def name_relation(self, name: Token) -> str:
        """A relation's name, as it stands in the text."""
        if name.text in self._mentioned or self.knows(name.text):
            raise refused(self._text, name.position, f"{name.text} is taken already", "give it a name of its own")
        self._relations.add(name.text)
        return name.text

    def knows(self, variable: str) -> bool:
        """Whether the variable stands for a node or relation, here or around it."""
        return self.label(variable) is not None or self.is_relation(variable)

    def is_relation(self, variable: str) -> bool:
        """Whether the variable stands for a relation."""
        return variable in self._relations or (self.parent is not None and self.parent.is_relation(variable))

    def label(self, variable: str) -> str | None:
        """A node's label; None where it isn't a node, or none is known yet."""
        return self._labels.get(variable) or (self.parent.label(variable) if self.parent else None)

    def is_shared(self, variable: str) -> bool:
        """Whether the variable belongs to a MATCH around this one."""
        return self.parent is not None and self.parent.knows(variable)

    def close(self, steps: Sequence[Step]) -> tuple[tuple[str, str], ...]:
        """All nodes with their labels, once the MATCH has been read.

        Raises:
            InvalidInput: a node has no label, or nothing connects it with the others.
        """
        labels: list[tuple[str, str]] = []
        for variable, position in self._mentioned.items():
            label = self.label(variable)
            if label is None:
                shown = "a node" if variable.startswith(ANONYMOUS) else f"the node {variable}"
                raise refused(self._text, position, f"{shown} has no label", "write (name:Label) in one of its places")
            labels.append((variable, label))
        self._refuse_loose_nodes(steps)
        return tuple(labels)

    def _refuse_loose_nodes(self, steps: Sequence[Step]) -> None:
        shared = {variable for variable in self._mentioned if self.is_shared(variable)}
        reached = shared if self.parent else {next(iter(self._mentioned))}
        if not reached:
            position = next(iter(self._mentioned.values()))
            raise refused(self._text, position, "EXISTS names no node of the MATCH around it", "let it begin at one")
        growing = True
        while growing:
            more = {end for step in steps for end in (step.source, step.target) if {step.source, step.target} & reached}
            growing = not more <= reached
            reached |= more
        for variable, position in self._mentioned.items():
            if variable not in reached:
                raise refused(
                    self._text, position, "nothing joins this node to the others", "join the parts by a relation"
                )
