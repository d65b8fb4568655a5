"""Formulas as MathML, by docutils' own translator: they need neither a script nor the network.

Docstrings and pages write formulas in plain text, as indented blocks that are legible in a terminal
and in an editor; :func:`tex_of_block` turns them into TeX for the site. What plain text cannot say
is TeX in the page, ``$…$`` and ``$$…$$``.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

logger = logging.getLogger(__name__)

#: bars are as high as a letter: a norm of a sum would otherwise draw them as high as its limits
_BARS = re.compile(r"<mo[^>]*>([‖|∥⟨⟩])</mo>")


def mathml(tex: str, block: bool) -> str:
    """The ``<math>`` element of a formula in TeX."""
    try:
        translated = latex2mathml.tex2mathml(tex, as_block=block)
    except MathError as error:
        logger.warning("a formula that cannot be set: %s: %s", error, tex)
        return f"<code>{escape(tex)}</code>"
    translated = re.sub(r"\n\s*", "", translated)
    return _BARS.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', translated)


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(f'<span class="math">{mathml(node.astext(), False)}</span>')
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math-block">{mathml(node.astext(), True)}</div>\n')
    raise nodes.SkipNode


# -- formulas in plain text ---------------------------------------------------------------------

_SUBSCRIPTS = dict(zip("ᵢⱼₐ₀₁₂₊₋", ["i", "j", "a", "0", "1", "2", "+", "-"], strict=True))
_SUPERSCRIPTS = dict(zip("²³ᵀᵖ⁺⁻¹", ["2", "3", r"\top", "p", "+", "-", "1"], strict=True))
_SYMBOLS = {
    "α": r"\alpha ",
    "β": r"\beta ",
    "γ": r"\gamma ",
    "δ": r"\delta ",
    "ε": r"\varepsilon ",
    "θ": r"\theta ",
    "λ": r"\lambda ",
    "μ": r"\mu ",
    "ν": r"\nu ",
    "ρ": r"\rho ",
    "σ": r"\sigma ",
    "τ": r"\tau ",
    "φ": r"\varphi ",
    "Φ": r"\Phi ",
    "ℓ": r"\ell ",
    "Σ": r"\sum ",
    "½": r"\tfrac{1}{2}",
    "‖": r"\|",
    "⟨": r"\langle ",
    "⟩": r"\rangle ",
    "·": r"\cdot ",
    "−": "-",
    "≤": r"\le ",
    "≥": r"\ge ",
    "∈": r"\in ",
    "±": r"\pm ",
    "∓": r"\mp ",
    "⊗": r"\otimes ",
    "∇": r"\nabla ",
    "√": r"\surd ",
    "…": r"\ldots ",
    "κ": r"\kappa ",
    "′": "'",
    "∞": r"\infty ",
    "←": r"\leftarrow ",
    "∫": r"\int ",
}
#: names of functions: upright, with what stands below them
_FUNCTIONS = {"min", "max", "sup", "inf", "exp", "tanh", "log"}
_OPERATORS = {"sign", "mean", "diag", "argmin", "argmax", "clip", "chol", "blockdiag"}
#: products of letters that are no words
_PRODUCTS = re.compile(r"(?=.*[A-Z])[A-Za-z]{2}|db|nd")
_ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar"}
#: what tells a block of formulas from one of code or of steps in words
_MATHS = re.compile("[½‖Σᵢβτℓ≤≥²⁻ᵀ]")
_STEPS = re.compile(
    r"^\s*(?:(?:repeat|until|initialise|tausvm)\b|>>>|\$ )|\.py|←.*\n.*←|--", re.MULTILINE
)
_TOKEN = re.compile(
    r"(?P<accent>.[\u0302-\u0304])|(?P<index>_\{[^}]*\}|_[A-Z·]{1,2}(?![a-z])|_[a-z]{2,}|_\w)"
    r"|(?P<word>(?:a )?WORD(?: (?:a )?WORD)*)|(?P<one>.)".replace(
        "WORD", "[A-Za-z]{2,}(?:_[A-Za-z]+)*"
    )
)


def is_formula(block: str) -> bool:
    """Whether a literal block is a formula in plain text."""
    return bool(_MATHS.search(block)) and not _STEPS.search(block)


def tex_of_plain(text: str) -> str:
    """One line of plain text, such as ``½‖f‖² + Σᵢ cᵢ``, as TeX."""
    made, position = [], 0
    while position < len(text):
        for table, sign in ((_SUBSCRIPTS, "_"), (_SUPERSCRIPTS, "^")):
            run = re.match(f"[{''.join(table)}]+", text[position:])
            if run:
                made.append(sign + "{" + "".join(table[letter] for letter in run[0]) + "}")
                position += run.end()
                break
        else:
            token = _TOKEN.match(text, position)
            assert token is not None  # the last way matches any letter
            made.append(_tex_of_token(token))
            position = token.end()
    return "".join(made)


def _tex_of_token(token: re.Match[str]) -> str:
    before, after = token.string[: token.start()], token.string[token.end() :]
    if token["accent"]:
        letter, accent = token["accent"]
        return f"\\{_ACCENTS[accent]}{{{_SYMBOLS.get(letter, letter)}}}"
    if token["index"]:
        return "_{" + tex_of_plain(token["index"][1:].strip("{}")) + "}"
    if token["word"]:
        word, _, index = token["word"].partition("_")
        below = f"_{{{index}}}" if index else ""
        if word in _FUNCTIONS:
            return f"\\{word}{below} "
        if word in _OPERATORS or (len(index) == 1 and word == "kink"):
            return f"\\operatorname{{{word}}}{below}" + (r"\," if after.startswith(" ") else "")
        if _PRODUCTS.fullmatch(token["word"]):
            return token["word"]
        left = r"\;" if before.endswith(" ") else ""
        right = r"\;" if after.startswith(" ") else ""
        return rf"{left}\text{{{token['word']}}}{right}"
    letter = token["one"]
    if letter == "½" and before[-1:].isalpha():  # g½: g at the middle
        return "_{1/2}"
    return _SYMBOLS.get(letter, letter)


def tex_of_block(lines: list[str]) -> str:
    """Lines of a block, aligned: names of the lines, formulas, remarks."""
    rows = []
    for line in lines:
        if not line.strip():
            continue
        name, formula = "", line.strip()
        named = re.match(r"([A-Za-z_]{3,}) {2,}(?=[^ =≥])", line)
        if named:
            name, formula = named[1], line[named.end() :].strip()
        pieces = [tex_of_plain(piece) for piece in re.split(r" {2,}", formula)]
        left = rf"\text{{{name}}}" if name else ""
        rows.append(f"{left}\\quad&" + r"\quad ".join(pieces))
    return "\\begin{aligned}" + r"\\".join(rows) + "\\end{aligned}"


def typeset(lines: list[str]) -> None:
    """Turn the literal blocks of a docstring's lines that are formulas into maths, in place."""
    text, position = list(lines), 0
    lines.clear()
    while position < len(text):
        line = text[position]
        if line.strip() != "::":
            lines.append(line)
            position += 1
            continue
        indent = len(line) - len(line.lstrip())
        end = position + 1
        while end < len(text) and (
            not text[end].strip() or len(text[end]) - len(text[end].lstrip()) > indent
        ):
            end += 1
        block = text[position + 1 : end]
        if not is_formula("\n".join(block)):
            lines.extend(text[position:end])
        else:
            margin = min(len(row) - len(row.lstrip()) for row in block if row.strip())
            tex = tex_of_block([row[margin:] for row in block])
            lines += [" " * indent + ".. math::", "", " " * (indent + 4) + tex, ""]
        position = end


def _typeset_docstring(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    typeset(lines)


class TypesetBlocks(SphinxTransform):
    """Formulas among the indented blocks of a page."""

    default_priority = 390

    def apply(self, **kwargs: Any) -> None:
        if not str(self.document.get("source", "")).endswith(".md"):  # what examples print
            return
        for block in list(self.document.findall(nodes.literal_block)):
            if block.get("language", "default") not in ("default", "none", ""):
                continue
            text = block.astext()
            if is_formula(text):
                tex = tex_of_block(text.split("\n"))
                block.replace_self(nodes.math_block(text, tex, nowrap=True, number=None))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    app.add_transform(TypesetBlocks)
    # before numpydoc, which moves the sections of a docstring about
    app.connect("autodoc-process-docstring", _typeset_docstring, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
