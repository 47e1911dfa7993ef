"""The kernels of a module: their parameters, which of them are constants, and the helper functions that they call."""

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilewright.rules.source import Module


@dataclass(frozen=True, eq=False)
class Parameter:
    """One parameter of a kernel."""

    name: str
    node: ast.arg
    constant: bool  # annotated with `ct.Constant`, or an alias of it


class Kernel:
    """A function decorated with `ct.kernel`."""

    def __init__(self, module: "Module", node: ast.FunctionDef, hints: dict[str, ast.expr]) -> None:
        self.module = module
        self.node = node
        self.name = node.name
        self.hints = hints  # keywords of the decorator: occupancy, num_ctas, opt_level

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """In the order of the launch tuple."""
        arguments = self.node.args
        return tuple(
            Parameter(each.arg, each, _is_constant(self.module, each.annotation))
            for each in (*arguments.posonlyargs, *arguments.args)
        )

    @property
    def constants(self) -> tuple[str, ...]:
        """Names of the constant parameters."""
        return tuple(each.name for each in self.parameters if each.constant)

    @cached_property
    def helpers(self) -> tuple[ast.FunctionDef, ...]:
        """Functions of the same module that the kernel calls, directly or through each other."""
        found: dict[str, ast.FunctionDef] = {}
        pending: list[ast.FunctionDef] = [self.node]
        while pending:
            for node in ast.walk(pending.pop()):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in found:
                    function = self.module.functions.get(node.func.id)
                    if isinstance(function, ast.FunctionDef) and function is not self.node:
                        found[node.func.id] = function
                        pending.append(function)
        return tuple(found.values())


def find_kernels(module: "Module") -> tuple[Kernel, ...]:
    """All kernels of a module, in order; decorators around `ct.kernel` do not matter."""
    kernels = []
    for node in module.nodes(ast.FunctionDef):
        for decorator in node.decorator_list:
            function = decorator.func if isinstance(decorator, ast.Call) else decorator
            if module.names.tile(function) == "kernel":
                keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
                kernels.append(Kernel(module, node, {each.arg: each.value for each in keywords if each.arg}))
    return tuple(sorted(kernels, key=lambda kernel: kernel.node.lineno))


def _is_constant(module: "Module", annotation: ast.expr | None) -> bool:
    """`ct.Constant`, `ct.Constant[int]`, `Annotated[int, ct.ConstantAnnotation()]`, or a module-level alias of one."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return False
    if isinstance(annotation, ast.Name) and module.names.resolve(annotation) is None:
        value = _module_value(module, annotation.id)
        return value is not None and _is_constant(module, value)
    if isinstance(annotation, ast.Subscript):
        return any(module.names.tile(node) in ("Constant", "ConstantAnnotation") for node in ast.walk(annotation))
    meaning = module.names.resolve(annotation) if annotation is not None else None
    # An alias that another module of the package made: `from .utils import ConstInt`.
    return meaning is not None and meaning.rpartition(".")[2].startswith("Const")


def _module_value(module: "Module", name: str) -> ast.expr | None:
    for node in module.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=bound)], value=value) if bound == name:
                return value
    return None
