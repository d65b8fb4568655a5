"""Sphinx: `make docs` builds the pages of this folder into docs/_build/html."""

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

import tausvm

project = "tausvm"
author = "The tausvm developers"
version = release = tausvm.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]

html_theme = "alabaster"
html_theme_options = {
    "description": "Support vector machines at every level",
    "page_width": "64em",
    "fixed_sidebar": True,
}
html_title = "tausvm"

lexers["mermaid"] = TextLexer()  # drawn where a page is shown by others, legible text here

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc shows the types that the docstrings state
numpydoc_show_class_members = False  # the template lists our methods, not scikit-learn's
myst_heading_anchors = 3
