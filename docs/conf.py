"""Sphinx: `make docs` builds the pages of this folder into docs/_build/html."""

from __future__ import annotations

import os
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.highlighting import lexers

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

from inventories import inventories

import tausvm

HERE = Path(__file__).parent
#: TAUSVM_DOCS=quick leaves the examples unrun and the pictures undrawn, to look for broken pages
QUICK = os.environ.get("TAUSVM_DOCS") == "quick"

project = "tausvm"
author = "The tausvm developers"
copyright = "the tausvm developers, BSD-3-Clause"
version = release = tausvm.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "names",
    "portraits",
    "written_out",
]
if QUICK:
    extensions.remove("sphinx.ext.viewcode")
templates_path = ["_templates"]
exclude_patterns = ["_build", "**/README.md"]

html_theme = "pydata_sphinx_theme"
html_title = "tausvm"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sphinx = False
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "tutorial", "search", "genindex", "py-modindex")}
html_theme_options = {
    "logo": {"text": "tausvm"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

lexers["mermaid"] = TextLexer()  # drawn where a page is shown by others, legible text here

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc shows the types that the docstrings state
numpydoc_show_class_members = False  # the template lists our methods, not scikit-learn's
numpydoc_xref_param_type = False
myst_heading_anchors = 3
myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "dollarmath", "substitution"]
myst_substitutions = {"release": release}
myst_dmath_double_inline = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

intersphinx_mapping = inventories(HERE / "_build" / "inventories")
tausvm_pictures = not QUICK

#: packages of others that an example shows: it is shown unrun where they are not installed
SHOWN = {"conformal": "mapie", "frames": "polars", "save_and_export": "onnxruntime"}
unrun = [name for name, package in SHOWN.items() if find_spec(package) is None]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": rf"/(?!({'|'.join(unrun) or '-'})\.py)\w+\.py$",
    "plot_gallery": not QUICK,
    "within_subsection_order": "gallery.AsListed",
    "subsection_order": ["../examples/start", "../examples/deeper", "../examples/papers"],
    "doc_module": ("tausvm",),
    "backreferences_dir": "generated/examples",
    "reference_url": {"tausvm": None},
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,  # seconds of a busy machine say nothing
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "default_thumb_file": str(HERE / "_static" / "logo.png"),
    "write_computation_times": False,
    "copyfile_regex": "",
    "line_numbers": False,
    "first_notebook_cell": None,
    "notebook_extensions": set(),
}

warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive")


def _sources_of_ours_alone(app: Sphinx, environment: BuildEnvironment) -> None:
    """viewcode lists modules of others, such as time, whose sources it cannot show."""
    listed = getattr(environment, "_viewcode_modules", {})
    for module in [name for name in listed if not name.startswith("tausvm")]:
        del listed[module]


def setup(app: Sphinx) -> None:
    app.connect("env-check-consistency", _sources_of_ours_alone)
