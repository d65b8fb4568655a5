"""A page about a model: one HTML file that opens in any browser, without a network."""

from .page import render_report, write_report

__all__ = ["render_report", "write_report"]
