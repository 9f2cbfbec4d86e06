"""Formulas of the documentation site: LaTeX becomes SVG while the site is built.

So a page needs no script and no request, and looks the same everywhere. KaTeX and MathJax draw as well, but each is a
script of some hundred kilobytes with its own fonts that would be shipped with the site; MathML, which browsers draw
themselves, depends on a mathematical font that most Linux machines do not have.
"""

from __future__ import annotations

import html
import re
from typing import Any

import ziamath

SIZE = {"span": 16, "div": 19}  # pixels of the letters: in a line, and on lines of their own
# What pymdownx.arithmatex makes of $…$ and $$…$$.
_FORMULA = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL)

ziamath.config.svg2 = False  # shapes rather than references to them, which two formulas on a page would share


def on_page_content(content: str, **_: Any) -> str:
    """Replace the formulas of a page."""
    return _FORMULA.sub(_draw, content)


def _draw(match: re.Match[str]) -> str:
    latex = " ".join(html.unescape(match["latex"]).split())
    formula = ziamath.Latex(latex, size=SIZE[match["tag"]], inline=match["tag"] == "span", color="currentColor")
    label = f'<svg role="img" aria-label="{html.escape(latex)}"'
    drawn = formula.svg().replace("<svg", f'{label} style="vertical-align: {formula.getyofst():.1f}px"', 1)
    return f'<{match["tag"]} class="formula">{drawn}</{match["tag"]}>'
