"""Render the results as Data Docs of Great Expectations: one page per table and an index, which need no network.

Great Expectations does not escape the values that it samples, and its pages load remote scripts: values are escaped
here before they are rendered, and all scripts are removed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipelines.quality.expectations.rules import USABLE
from pipelines.quality.registry import CHECKS
from pipelines.quality.results import Result
from schemas.printable import escape_line

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult

INDEX = "index.html"
_REMOTE = re.compile(r"<script\b.*?</script>|<link\b[^>]*>|<img\b[^>]*>|<footer\b.*?</footer>", re.DOTALL)
_HEAD = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{font-family:sans-serif} td,th{padding:.3em .6em;text-align:left;vertical-align:top}
.text-success::before{content:"✓"} .text-danger::before{content:"✗"} .text-warning::before{content:"!"}</style>
</head>"""


def render_data_docs(
    results: Sequence[Result], expectation_results: Mapping[str, Sequence[ExpectationValidationResult]], *, title: str
) -> Iterator[tuple[str, str]]:
    """Names and contents of the pages; `expectation_results` has the results of the suites by table."""
    tables = list(dict.fromkeys(result.table for result in results))
    for table in tables:
        declared = [r for r in results if r.table == table and (r.check in CHECKS or r.check == USABLE.name)]
        shown = [*expectation_results.get(table, ()), *map(_to_expectation_result, declared)]
        yield f"{table}.html", _render_page(table, shown, title)
    yield INDEX, _render_index(results, tables, title)


def _render_page(table: str, results: Sequence[ExpectationValidationResult], title: str) -> str:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
    from great_expectations.render.view.view import DefaultJinjaPageView

    passed = sum(bool(result.success) for result in results)
    statistics = {
        "evaluated_expectations": len(results),
        "successful_expectations": passed,
        "unsuccessful_expectations": len(results) - passed,
        "success_percent": 100 * passed / len(results),
    }
    suite = ExpectationSuiteValidationResult(
        success=passed == len(results),
        results=[_escape_result(result) for result in results],
        suite_name=table,
        statistics=statistics,
        meta={"run_id": {"run_name": title, "run_time": ""}},
    )
    view: Any = DefaultJinjaPageView()
    page: Any = ValidationResultsPageRenderer()
    rendered = view.render(page.render(suite), show_how_to_buttons=False)
    return _REMOTE.sub("", rendered).replace("</head>", _HEAD, 1)


def _to_expectation_result(result: Result) -> ExpectationValidationResult:
    """Convert a result of a declared check to one of Great Expectations."""
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    observed = f"{result.observed}; allowed: {result.allowed}"
    sample = f"; such as {', '.join(result.sample)}" if result.sample else ""
    return ExpectationValidationResult(
        success=result.passed,
        expectation_config=ExpectationConfiguration(
            type=_register_declared_check(),
            kwargs={},
            description=f"{result.check} ({result.severity}): {result.reason}",
        ),
        result={"observed_value": escape_line(observed + sample)},
        exception_info={"raised_exception": False, "exception_message": None, "exception_traceback": None},
        meta={},
    )


def _register_declared_check() -> str:
    """Register an expectation type for the declared checks, once, and return its name."""
    from great_expectations.expectations.expectation import BatchExpectation
    from great_expectations.expectations.registry import list_registered_expectation_implementations

    if "expect_declared_check" not in list_registered_expectation_implementations():

        class ExpectDeclaredCheck(BatchExpectation):
            """A check that runs outside of Great Expectations."""

            def _validate(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError("a declared check is not run by Great Expectations")

    return "expect_declared_check"


def _escape_result(result: ExpectationValidationResult) -> ExpectationValidationResult:
    from great_expectations.core import ExpectationValidationResult

    return ExpectationValidationResult(
        success=result.success,
        expectation_config=result.expectation_config,
        result=_escape_value(dict(result.result or {})),
        exception_info={"raised_exception": False, "exception_message": None, "exception_traceback": None},
        meta={},
    )


def _escape_value(value: Any) -> Any:
    if isinstance(value, str):
        return html.escape(escape_line(value))
    if isinstance(value, Mapping):
        return {key: _escape_value(inner) for key, inner in value.items()}
    return [_escape_value(inner) for inner in value] if isinstance(value, list | tuple) else value


def _render_index(results: Sequence[Result], tables: Sequence[str], title: str) -> str:
    rows = []
    for table in tables:
        own = [result for result in results if result.table == table]
        stopped, failed = sum(r.stops for r in own), sum(not r.passed for r in own)
        mark = "✗" if stopped else "!" if failed else "✓"
        link = f'<a href="{html.escape(table)}.html">{html.escape(table)}</a>'
        rows.append(f"<tr><td>{mark}</td><td>{link}</td><td>{len(own) - failed} of {len(own)} checks pass</td></tr>")
    heading = f"Data quality, {html.escape(title)}"
    body = f"<body><h1>{heading}</h1><table>{''.join(rows)}</table></body>"
    return f'<!DOCTYPE html><html><head><meta charset="UTF-8"><title>{heading}</title>{_HEAD}{body}</html>'
