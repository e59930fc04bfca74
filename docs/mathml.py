"""Formulas as MathML, which browsers draw by themselves: the pages need no network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

# docutils puts the index of an accented letter below the letter instead of beside it
HAT = re.compile(
    r"<munderover>\s*(<mi>.*?</mi>)\s*(<mi>.*?</mi>)\s*(<mo[^>]*>ˆ</mo>)\s*</munderover>"
)


def mathml(formula: str, is_block: bool) -> str:
    """Translate LaTeX."""
    text = tex2mathml(formula, as_block=is_block)
    return HAT.sub(r"<msub><mover accent='true'>\1\3</mover>\2</msub>", text)


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(mathml(node.astext(), is_block=False))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    formula = mathml(node.astext(), is_block=True)
    translator.body.append(f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer that ``html_math_renderer`` names."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
