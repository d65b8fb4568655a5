"""A graph under construction: nodes, constants and names. All numbers are float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

#: operators of that version are in every runtime since 2022
OPSET = 17
ML_OPSET = 3
IR_VERSION = 8
ML_DOMAIN = "ai.onnx.ml"


def require_onnx() -> Any:
    """The package, imported when first needed."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError(
            "the export to ONNX needs onnx, which is not installed: pip install 'tausvm[onnx]'"
        ) from error
    return onnx


class Graph:
    """Collects nodes; every method returns the name of what it computes."""

    def __init__(self) -> None:
        self.onnx = require_onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._count = 0
        self._domains = {"": OPSET}

    def _name(self, word: str) -> str:
        self._count += 1
        return f"{word}_{self._count}"

    def input(self, name: str, width: int, *, text: bool = False) -> str:
        """An input of (rows, width)."""
        types = self.onnx.TensorProto
        kind = types.STRING if text else types.DOUBLE
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, ["rows", width]))
        return name

    def output(self, value: str, name: str, kind: str, shape: list[Any]) -> None:
        """Give a value out under a name."""
        types = self.onnx.TensorProto
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self.outputs.append(
            self.onnx.helper.make_tensor_value_info(name, getattr(types, kind), shape)
        )

    def constant(self, value: ArrayLike, word: str = "constant") -> str:
        """A number or an array, float64 unless it holds integers or text."""
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = array.astype(np.float64)
        elif array.dtype.kind in "UO":
            array = array.astype(object)
        name = self._name(word)
        # numpy_helper wants a plain layout
        self.constants.append(
            self.onnx.numpy_helper.from_array(np.array(array, order="C"), name=name)
        )
        return name

    def node(
        self, operator: str, *inputs: str, domain: str = "", outputs: int = 1, **attributes: Any
    ) -> str:
        """One operator; the first of its outputs."""
        name = self._name(operator.lower())
        names = [name, *(f"{name}_{k}" for k in range(1, outputs))]
        if domain:
            self._domains[domain] = ML_OPSET
        self.nodes.append(
            self.onnx.helper.make_node(operator, list(inputs), names, domain=domain, **attributes)
        )
        return name

    def affine(self, value: str, shift: ArrayLike, factor: ArrayLike) -> str:
        """(value − shift)·factor."""
        moved = self.node("Sub", value, self.constant(shift))
        return self.node("Mul", moved, self.constant(factor))

    def columns(self, value: str, index: ArrayLike) -> str:
        """Some columns of a value."""
        return self.node("Gather", value, self.constant(np.asarray(index, np.int64)), axis=1)

    def concatenated(self, parts: list[str]) -> str:
        """Values side by side."""
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=1)

    def model(self, description: str, metadata: dict[str, str]) -> Any:
        """The checked model."""
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, "tausvm", self.inputs, self.outputs, self.constants)
        model = helper.make_model(
            graph,
            producer_name="tausvm",
            producer_version=metadata["version"],
            doc_string=description,
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid(name, v) for name, v in self._domains.items()],
        )
        helper.set_model_props(model, metadata)
        self.onnx.checker.check_model(model)
        return model
