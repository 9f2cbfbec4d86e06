"""The results as Data Docs of Great Expectations: one page per table and an index, which need no network.

Great Expectations does not escape the values that it samples, and its pages load scripts from elsewhere: values are
escaped here before they are rendered, and the pages are left without any script.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipelines.quality.registry import CHECKS
from pipelines.quality.results import Result, visible
from pipelines.quality.suite import USABLE

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult

INDEX = "index.html"
_REMOTE = re.compile(r"<script\b.*?</script>|<link\b[^>]*>|<img\b[^>]*>|<footer\b.*?</footer>", re.DOTALL)
_HEAD = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{font-family:sans-serif} td,th{padding:.3em .6em;text-align:left;vertical-align:top}
.text-success::before{content:"✓"} .text-danger::before{content:"✗"} .text-warning::before{content:"!"}</style>
</head>"""


def pages(
    results: Sequence[Result], given: Mapping[str, Sequence[ExpectationValidationResult]], *, title: str
) -> Iterator[tuple[str, str]]:
    """Names and contents of the pages; `given` has the results of the suites by table."""
    tables = list(dict.fromkeys(result.table for result in results))
    for table in tables:
        own = [r for r in results if r.table == table and (r.check in CHECKS or r.check == USABLE.name)]
        yield f"{table}.html", _page(table, [*given.get(table, ()), *map(_declared, own)], title)
    yield INDEX, _index(results, tables, title)


def _page(table: str, evaluated: Sequence[ExpectationValidationResult], title: str) -> str:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
    from great_expectations.render.view.view import DefaultJinjaPageView

    passed = sum(bool(of.success) for of in evaluated)
    statistics = {
        "evaluated_expectations": len(evaluated),
        "successful_expectations": passed,
        "unsuccessful_expectations": len(evaluated) - passed,
        "success_percent": 100 * passed / len(evaluated),
    }
    suite = ExpectationSuiteValidationResult(
        success=passed == len(evaluated),
        results=[_escaped(of) for of in evaluated],
        suite_name=table,
        statistics=statistics,
        meta={"run_id": {"run_name": title, "run_time": ""}},
    )
    view: Any = DefaultJinjaPageView()
    page: Any = ValidationResultsPageRenderer()
    rendered = view.render(page.render(suite), show_how_to_buttons=False)
    return _REMOTE.sub("", rendered).replace("</head>", _HEAD, 1)


def _declared(result: Result) -> ExpectationValidationResult:
    """A result of ours in the form of Great Expectations, so that it stands beside the others."""
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    found = f"{result.observed}; allowed: {result.allowed}"
    such = f"; such as {', '.join(result.sample)}" if result.sample else ""
    return ExpectationValidationResult(
        success=result.passed,
        expectation_config=ExpectationConfiguration(
            type=_kind(), kwargs={}, description=f"{result.check} ({result.severity}): {result.reason}"
        ),
        result={"observed_value": visible(found + such)},
        exception_info={"raised_exception": False, "exception_message": None, "exception_traceback": None},
        meta={},
    )


def _kind() -> str:
    """The type under which Great Expectations knows the declared checks: one that it is told of here."""
    from great_expectations.expectations.expectation import BatchExpectation
    from great_expectations.expectations.registry import list_registered_expectation_implementations

    if "expect_declared_check" not in list_registered_expectation_implementations():

        class ExpectDeclaredCheck(BatchExpectation):
            """A check that was made outside of Great Expectations."""

            def _validate(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError("its results are given, not made")

    return "expect_declared_check"


def _escaped(given: ExpectationValidationResult) -> ExpectationValidationResult:
    from great_expectations.core import ExpectationValidationResult

    return ExpectationValidationResult(
        success=given.success,
        expectation_config=given.expectation_config,
        result=_safe(dict(given.result or {})),
        exception_info={"raised_exception": False, "exception_message": None, "exception_traceback": None},
        meta={},
    )


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return html.escape(visible(value))
    if isinstance(value, Mapping):
        return {key: _safe(inner) for key, inner in value.items()}
    return [_safe(inner) for inner in value] if isinstance(value, list | tuple) else value


def _index(results: Sequence[Result], tables: Sequence[str], title: str) -> str:
    rows = []
    for table in tables:
        of = [result for result in results if result.table == table]
        stopped, failed = sum(r.stops for r in of), sum(not r.passed for r in of)
        mark = "✗" if stopped else "!" if failed else "✓"
        link = f'<a href="{html.escape(table)}.html">{html.escape(table)}</a>'
        rows.append(f"<tr><td>{mark}</td><td>{link}</td><td>{len(of) - failed} of {len(of)} checks pass</td></tr>")
    named = html.escape(title)
    body = f"<body><h1>Data quality</h1><p>{named}</p><table>{''.join(rows)}</table></body>"
    return f'<!DOCTYPE html><html><head><meta charset="UTF-8"><title>Data quality, {named}</title>{_HEAD}{body}</html>'
