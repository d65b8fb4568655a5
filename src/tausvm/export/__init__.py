"""Fitted models as ONNX graphs, which run without Python. Needs onnx."""

from .onnx_model import to_onnx

__all__ = ["to_onnx"]
