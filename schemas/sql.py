"""SQL written in a configuration: what is refused before a JVM starts, and how a mapping of values is written."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Not a quoted name that is called: with a setting of Spark, double quotes are those of names.
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"(?!\s*\()")
# Functions that call Java, names that are only known when the query runs, and `TRANSFORM … USING 'a program'`; also
# with a comment before the program.
_FOREIGN = re.compile(
    r"\b(?:reflect|try_reflect|java_method)\b|\bidentifier\s*(?=\()|\busing(?=\s*(?:['\"]|r['\"]|/\*|--))",
    re.IGNORECASE,
)
# What makes it unclear where a text ends: comments, raw texts, escaped quotes, quotes inside a quoted name.
_UNCLEAR = re.compile(r"--|/\*|\br['\"]|\\['\"]|`[^`]*['\"]", re.IGNORECASE)
_CHANGING = re.compile(
    r"\b(?:rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id|now|curdate"
    r"|current_date|current_timestamp|localtimestamp)\s*(?=\()",
    re.IGNORECASE,
)
_GENERATING = re.compile(
    r"\b(?:explode|explode_outer|posexplode|posexplode_outer|inline|inline_outer|stack|json_tuple)\s*(?=\()",
    re.IGNORECASE,
)
_CLOSING = {"(": ")", "[": "]"}


def refuse_foreign_code(sql: str) -> str:
    """Refuse SQL that calls any method of Java, runs a program, or has names that are only known when it runs."""
    if not sql.strip():
        raise ValueError("the SQL is empty")
    called = _FOREIGN.search(sql if _UNCLEAR.search(sql) else _TEXT.sub("''", sql))
    if called is not None:
        raise ValueError(f"{called[0].strip()} may not be used: it can run any code")
    return sql


def check_query(sql: str) -> str:
    """Refuse SQL that can run code, that gives other rows each time, or whose brackets and quotes do not match."""
    refuse_foreign_code(sql)
    code = _TEXT.sub("''", sql)
    changing = _CHANGING.search(code)
    if changing is not None:
        name = changing[0].strip()
        raise ValueError(
            f"{name} returns a different value each time, so that no run could be repeated: derive the value from "
            "the row, as an id is by sha2(to_json(struct(*)), 256)"
        )
    _check_brackets(code, sql)
    return sql


def check_expression(sql: str) -> str:
    """Refuse what `check_query` refuses, and functions that give several rows."""
    generating = _GENERATING.search(_TEXT.sub("''", sql))
    if generating is not None:
        raise ValueError(
            f"{generating[0].strip()} gives several rows: name the array in `explode` beside `columns`, and use `item` "
            "and `pos` here"
        )
    return check_query(sql)


def write_value_map(source: str, values: Mapping[str, str]) -> str:
    """An expression that replaces the values of `source` that are listed, and keeps the others."""
    text = f"CAST(({source}) AS STRING)"
    cases = " ".join(f"WHEN {_quote_text(old)} THEN {_quote_text(new)}" for old, new in values.items())
    return f"CASE {text} {cases} ELSE {text} END"


def _quote_text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _check_brackets(code: str, sql: str) -> None:
    if code.replace("''", "").count("'") or code.count('"') % 2 or code.count("`") % 2:
        raise ValueError(f"a quote in {sql!r} is not closed")
    waiting: list[str] = []
    for character in re.sub(r"`[^`]*`", "", code):
        if character in _CLOSING:
            waiting.append(_CLOSING[character])
        elif character in _CLOSING.values() and (not waiting or waiting.pop() != character):
            raise ValueError(f"{sql!r} has a {character!r} without its counterpart")
    if waiting:
        raise ValueError(f"{sql!r} lacks a closing {waiting[-1]!r}")
