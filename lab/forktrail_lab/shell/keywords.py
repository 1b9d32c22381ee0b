"""The words of the query language: keywords, functions, procedures, and which names have to stand in backticks."""

from __future__ import annotations

from collections.abc import Mapping

from forktrail_projectors.graph.readonly import PROCEDURES

KEYWORDS: tuple[str, ...] = (
    "MATCH", "OPTIONAL MATCH", "WHERE", "RETURN", "WITH", "UNWIND", "CALL", "ORDER BY", "LIMIT", "SKIP",
    "DISTINCT", "AS", "AND", "OR", "NOT", "XOR", "IN", "IS NULL", "IS NOT NULL", "STARTS WITH", "ENDS WITH", "CONTAINS",
    "EXISTS", "COUNT", "CASE", "WHEN", "THEN", "ELSE", "END", "ASC", "DESC", "UNION", "UNION ALL",
    "TRUE", "FALSE", "NULL", "ALL SHORTEST", "SHORTEST", "EXPLAIN", "PROFILE",
)  # fmt: skip
# With what a statement that only reads may begin.
STARTERS: tuple[str, ...] = (
    "MATCH", "OPTIONAL MATCH", "RETURN", "UNWIND", "WITH", "CALL", "EXPLAIN", "PROFILE",
)  # fmt: skip

# Functions worth offering, and what each takes; the engine has many more.
FUNCTIONS: Mapping[str, str] = {
    "count": "(x) or (*)", "sum": "(x)", "avg": "(x)", "min": "(x)", "max": "(x)", "collect": "(x)",
    "count_if": "(condition)", "percentileDisc": "(x, fraction)",
    "label": "(node or relation)", "id": "(node or relation)", "properties": "(nodes, name)", "keys": "(node)",
    "nodes": "(path)", "rels": "(path)", "length": "(path)", "start_node": "(relation)", "end_node": "(relation)",
    "size": "(list or text)", "coalesce": "(x, …)", "ifnull": "(x, else)", "nullif": "(x, y)", "typeof": "(x)",
    "range": "(from, to)", "greatest": "(x, …)", "least": "(x, …)", "cast": "(x AS type)",
    "lower": "(text)", "upper": "(text)", "trim": "(text)", "ltrim": "(text)", "rtrim": "(text)", "left": "(text, n)",
    "right": "(text, n)", "lpad": "(text, n, fill)", "rpad": "(text, n, fill)", "substring": "(text, from, length)",
    "split_part": "(text, by, n)", "string_split": "(text, by)", "replace": "(text, old, new)", "reverse": "(text)",
    "concat": "(text, …)", "concat_ws": "(between, text, …)", "contains": "(text, part)", "initcap": "(text)",
    "starts_with": "(text, start)", "ends_with": "(text, end)", "levenshtein": "(text, text)", "repeat": "(text, n)",
    "regexp_matches": "(text, pattern)", "regexp_full_match": "(text, pattern)", "md5": "(text)", "sha256": "(text)",
    "regexp_extract": "(text, pattern)", "regexp_replace": "(text, pattern, new)", "to_string": "(x)",
    "list_contains": "(list, x)", "list_sort": "(list)", "list_distinct": "(list)", "list_sum": "(list)",
    "list_transform": "(list, x -> y)", "list_filter": "(list, x -> condition)", "list_extract": "(list, n)",
    "list_concat": "(list, list)", "list_to_string": "(between, list)", "list_has_any": "(list, list)",
    "abs": "(x)", "ceil": "(x)", "floor": "(x)", "round": "(x, digits)", "sqrt": "(x)", "ln": "(x)", "log10": "(x)",
    "sign": "(x)", "to_int64": "(x)", "to_double": "(x)", "to_bool": "(x)",
    "epoch_ms": "(milliseconds)", "to_timestamp": "(seconds)", "timestamp": "(text)", "date": "(text)",
    "date_part": "(part, time)", "date_trunc": "(part, time)", "duration": "(text)", "to_microseconds": "(x)",
    "current_timestamp": "()", "current_date": "()",
}  # fmt: skip

# Words that can't be a label, relation type, column or variable as they are.
RESERVED = frozenset({
    "ACYCLIC", "ALL", "AND", "ANY", "ASC", "ASCENDING", "CALL", "CASE", "CAST", "COLUMN", "CREATE", "DBTYPE",
    "DEFAULT", "DESC", "DESCENDING", "DISTINCT", "ELSE", "END", "ENDS", "EXISTS", "FALSE", "GLOB", "GROUP", "HEADERS",
    "HINT", "IN", "INSTALL", "JOIN", "LOAD", "MACRO", "MULTI_JOIN", "NONE", "NOT", "NULL", "ON", "ONLY", "OPTIONAL",
    "OR", "ORDER", "PRIMARY", "PROFILE", "SHORTEST", "SINGLE", "STARTS", "TABLE", "THEN", "TRAIL", "TRUE", "UNION",
    "UNWIND", "WHEN", "WHERE", "WITH", "WSHORTEST", "XOR",
})  # fmt: skip


def quoted(name: str) -> str:
    """The name as a statement has to spell it: in backticks where it is a word of the language, or no plain word."""
    if name.isascii() and name.isidentifier() and name.upper() not in RESERVED:
        return name
    return f"`{name}`"


def procedures() -> list[str]:
    """What CALL may call, in the engine's lower case."""
    return sorted(name.lower() for name in PROCEDURES)
