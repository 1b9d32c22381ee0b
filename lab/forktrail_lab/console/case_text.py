"""A case's file as people read it: sections of aligned facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from forktrail_lab.console.case_file import CaseFile, Part
from forktrail_lab.console.output import counted, section_lines

Facts = list[tuple[str, object]]


def case_lines(file: CaseFile) -> list[str]:
    """The whole file, section by section, in the order in which things happen to a case."""
    sections: list[tuple[str, Facts]] = [
        ("case", _facts(file.case)),
        ("test", _facts(file.test)),
        ("what it sends", _sends(file.sends)),
        ("opened", _facts(file.opened)),
        ("rests on", [(str(part["id"]), _support(part)) for part in file.rests_on]),
        ("approval", _facts(file.approval)),
        ("observation", _observation(file.observation)),
        ("review", _facts(file.review)),
        ("finding", _finding(file.finding)),
    ]
    lines: list[str] = []
    for title, facts in sections:
        lines += [*([""] if lines else []), *section_lines(title, facts)]
    return lines


def _facts(part: Part | None) -> Facts:
    return [] if part is None else [(_words(name), _or_dash(value)) for name, value in part.items()]


def _words(name: str) -> str:
    return name.replace("_", " ")


def _or_dash(value: object) -> object:
    """None in place of what is empty, so that it shows as a dash."""
    return value if isinstance(value, bool | int) or value else None


def _sends(sends: Part) -> Facts:
    if sends["fault"] is not None:
        return [("not known", sends["fault"])]
    facts: Facts = []
    for request in cast("Sequence[Part]", sends["requests"]):
        facts += _under(str(request["id"]), _request(request))
    rules = [line for rule in cast("Sequence[Part]", sends["rules"]) for line in _rule(rule)]
    return [*facts, ("bounds", sends["bounds"]), *_under("outcome", rules)]


def _request(request: Part) -> list[str]:
    lines = [f"{request['method']} {request['path']}"]
    if request["identity"] is not None:
        names = ", ".join(cast("Sequence[str]", request["identity_headers"]))
        lines.append(f"as {request['identity']}: {names}")
    lines += [f"{name}: {value}" for name, value in cast("Mapping[str, str]", request["headers"]).items()]
    if request["body"] is not None:
        lines.append(f"body: {request['body']}")
    captures = cast("Mapping[str, str]", request["captures"]).items()
    return [*lines, *(f"keeps {name} from {pointer} of the answer" for name, pointer in captures)]


def _rule(rule: Part) -> list[str]:
    return [f"{rule['outcome']} where", *(f"  {condition}" for condition in cast("Sequence[str]", rule["when"]))]


def _under(name: str, lines: Iterable[str]) -> Facts:
    return [(name if index == 0 else "", line) for index, line in enumerate(lines)]


def _support(part: Part) -> str:
    capabilities = ", ".join(cast("Sequence[str]", part["capabilities"])) or "nothing"
    return f"{part['test']}, gives {capabilities}; {_standing(part)}"


def _observation(part: Part | None) -> Facts:
    if part is None:
        return []
    hidden = ("evidence_sha256", "evidence_bytes", "receipt_valid", "receipt_fault", "at", "offset")
    size = part["evidence_bytes"]
    assert isinstance(size, int)
    return [
        *_facts({name: value for name, value in part.items() if name not in hidden}),
        ("evidence", f"sha256 {part['evidence_sha256']}, {counted(size, 'byte')}"),
        ("receipt", "valid" if part["receipt_valid"] else f"NOT valid: {part['receipt_fault']}"),
        *_facts({"at": part["at"], "offset": part["offset"]}),
    ]


def _finding(part: Part | None) -> Facts:
    if part is None:
        return []
    return [
        ("id", part["id"]),
        ("standing", _standing(part)),
        ("capabilities", _or_dash(part["capabilities"])),
    ]


def _standing(part: Part) -> str:
    """Whether a finding counts now, and if it doesn't, why."""
    if part["withdrawn"]:
        reason = f": {part['withdrawn_reason']}" if part["withdrawn_reason"] else ""
        return f"withdrawn by {part['withdrawn_by']}{reason}"
    return "current" if part["current"] else f"history, of revision {part['revision']}"
