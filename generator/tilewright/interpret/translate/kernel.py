"""Translate the typed IR of a kernel to a Python function: a line for each operation, Python's own control flow.

The function takes the `Run` and the flat arguments of the launch. The body of a loop is a function of its own, which
`loops.loop` runs, and so is a branch that lies deeper than Python can nest. Values that are the same in every launch
are computed here. Tiles are released after their last use.
"""

from collections import deque
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from cuda.tile._ir.ir import MemoryEffect
from cuda.tile._ir.ir import Var
from cuda.tile._ir.type import TokenTy

from tilewright.interpret.faults import Location
from tilewright.interpret.faults import unknown
from tilewright.interpret.frames import TRANSLATED
from tilewright.interpret.frontend import TypedKernel
from tilewright.interpret.loops import Exit
from tilewright.interpret.loops import loop
from tilewright.interpret.operations import control
from tilewright.interpret.operations.reductions import reduce
from tilewright.interpret.operations.reductions import scan
from tilewright.interpret.run import LOCATIONS
from tilewright.interpret.translate.blocks import all_operations
from tilewright.interpret.translate.blocks import outer_variables
from tilewright.interpret.translate.liveness import peak_bytes
from tilewright.interpret.translate.liveness import releases
from tilewright.interpret.translate.liveness import tile_bytes
from tilewright.interpret.translate.lowering import LOWERINGS
from tilewright.interpret.translate.lowering import Step
from tilewright.interpret.translate.operands import element_of

_MOST_CONSTANT_BYTES = 2**20  # of a value that is kept with the translated kernel
_MOST_BRANCHES = 50  # in each other in one function: Python takes 100 levels of indentation
_NOTHING_TO_DO = {
    "make_token": set[str](),
    "join_tokens": set[str](),
    "grid_dependency_control_wait": set[str](),
    "grid_dependency_control_launch_dependents": set[str](),
}


@dataclass(frozen=True, slots=True)
class TranslatedKernel:
    """A kernel specialised for one signature, as a Python function."""

    name: str
    function: Callable[..., object]  # of the run and the flat arguments; what it returns means nothing
    block_bytes: int  # memory that the tiles of one block need at most
    in_order: bool  # whether blocks must run one after another, since they print
    typed: TypedKernel | None  # for checking mode alone: it is large


def translate(kernel: TypedKernel, watch: Callable[[Any, Step], Step] | None = None) -> TranslatedKernel:
    """The Python function of a kernel; raises `UnsupportedOperation` for what is not known of its IR.

    `watch` takes each operation with its step, and returns what is run instead.
    """
    writer = _Writer(watch)
    source = writer.source(kernel.body)
    exec(compile(source, f"{TRANSLATED}{kernel.name}>", "exec"), writer.globals)
    return TranslatedKernel(
        name=kernel.name,
        function=writer.globals["kernel"],
        block_bytes=peak_bytes(kernel.body),
        in_order=any(op.op == "tile_printf" for op in all_operations(kernel.body)),
        typed=kernel if watch is not None else None,
    )


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where control flow goes from a block: the operation whose branch it is, if any."""

    branch: Any = None
    in_body: bool = False  # of a reduction or scan, where tiles have another shape than the IR says


class _Writer:
    """The source of the functions of a kernel, with the names that they refer to."""

    def __init__(self, watch: Callable[[Any, Step], Step] | None) -> None:
        self._watch = watch
        self.globals: dict[str, Any] = {
            "torch": torch,
            "truth": control.truth,
            "indices": control.indices,
            "captured": control.captured,
            "reduce": reduce,
            "scan": scan,
            "loop": loop,
            **Exit.__members__,
        }
        self._locations: dict[int, Location] = {}
        self.globals[LOCATIONS] = self._locations
        self._functions: deque[Callable[[], None]] = deque()  # what writes each that is called and not yet there
        self._lines: list[str] = []
        self._used: set[str] = set()
        self._depth = 0
        self._names: dict[str, str] = {}
        self._constants: dict[str, Any] = {}  # values known now, by name of the variable

    def source(self, body: Any) -> str:
        """Source of the function `kernel`, and of those that it calls."""
        self._used = {variable.name for op in all_operations(body) for variable in op.all_inputs()}
        self._function("kernel", body.params, lambda: self._block(body, _Scope()))
        while self._functions:
            self._functions.popleft()()
        return "\n".join(self._lines) + "\n"

    def _function(self, name: str, parameters: Sequence[Any], contents: Callable[[], None]) -> None:
        """Have a function written, whose body `contents` writes, behind the one that is being written."""

        def write() -> None:
            self._write(f"def {name}({', '.join(['run', *map(self._name, parameters)])}):", None)
            self._depth += 1
            contents()
            self._depth -= 1

        self._functions.append(write)

    def _write(self, line: str, op: Any) -> None:
        self._lines.append(" " * self._depth + line)
        if op is not None and op.loc.filename:
            function = op.loc.function.name if op.loc.function is not None else None
            self._locations[len(self._lines)] = Location(op.loc.filename, op.loc.line, function or "<lambda>")

    def _block(self, block: Any, scope: _Scope) -> None:
        before = len(self._lines)
        for op, released in zip(block, releases(block), strict=True):
            self._operation(op, scope)
            names = [self._name(variable) for variable in released if variable.name not in self._constants]
            if names and not op.is_terminator:
                self._write(f"del {', '.join(names)}", None)
        if len(self._lines) == before:
            self._write("pass", None)

    def _operation(self, op: Any, scope: _Scope) -> None:
        opcode = op.op
        if opcode in _NOTHING_TO_DO:
            return
        control_flow = getattr(self, f"_{opcode}", None)
        if control_flow is not None:
            control_flow(op, scope)
        elif scope.in_body and opcode in ("tile_reshape", "tile_broadcast"):
            self._assign(op.result_vars, (op.x,), op)
        else:
            self._step(op, scope)

    # Control flow

    def _loop(self, op: Any, _: _Scope) -> None:
        name = f"loop_{len(self._lines)}"
        self.globals[f"{name}_carried"] = tuple(map(element_of, op.body_vars))
        outer = self._outer(op.body, op.body.params)
        arguments = [name, self._tuple(op.initial_values), self._tuple(outer), f"{name}_carried"]
        index = []
        if op.is_for_loop:
            index.append(op.induction_var)
            bounds = ", ".join(map(self._value, (op.start, op.stop, op.step)))
            arguments.append(f"indices({bounds}, {element_of(op.induction_var).compute})")
        self._function(name, [*index, *op.body_vars, *outer], lambda: self._block(op.body, _Scope()))
        self._call(op, f"loop(run, {', '.join(arguments)})")

    def _ifelse(self, op: Any, _: _Scope) -> None:
        if self._depth < _MOST_BRANCHES:
            self._branches(op)
            return

        def contents() -> None:
            self._branches(op)
            self._write(f"return END, {self._tuple(op.result_vars)}", None)

        name = f"branches_{len(self._lines)}"
        outer = self._outer([op])
        self._function(name, outer, contents)
        self._call(op, f"{name}({', '.join(['run', *map(self._name, outer)])})")

    def _call(self, op: Any, call: str) -> None:
        """Call what an operation became; unless it ends with its results, so does the function that calls."""
        self._write(f"left, values = {call}", op)
        self._write("if left is not END:", None)
        self._write(" return left, values", None)
        if op.result_vars:
            self._write(f"{self._targets(op.result_vars)}, = values", None)
        self._write("del values", None)

    def _outer(self, operations: Iterable[Any], parameters: Iterable[Any] = ()) -> Sequence[Any]:
        """Variables from outside that a function of these operations takes as parameters."""
        return [each for each in outer_variables(operations, parameters) if self._is_passed(each)]

    def _is_passed(self, variable: Any) -> bool:
        return variable.name not in self._constants and not isinstance(variable.try_get_type(), TokenTy)

    def _branches(self, op: Any) -> None:
        inner = _Scope(branch=op)
        self._write(f"if truth({self._value(op.cond)}):", op)
        for block, last in ((op.then_block, False), (op.else_block, True)):
            self._depth += 1
            self._block(block, inner)
            self._depth -= 1
            if not last:
                self._write("else:", None)

    def _end_branch(self, op: Any, scope: _Scope) -> None:
        if scope.in_body:
            self._write(f"return {self._tuple(op.outputs)}", op)
        else:
            self._assign(scope.branch.result_vars, op.outputs, op)

    def _continue(self, op: Any, _: _Scope) -> None:
        self._write(f"return CONTINUE, {self._tuple(op.values)}", op)

    def _break(self, op: Any, _: _Scope) -> None:
        self._write(f"return BREAK, {self._tuple(op.values)}", op)

    def _return(self, op: Any, _: _Scope) -> None:
        self._write("return RETURN, ()", op)

    # Reductions and scans

    def _tile_reduce(self, op: Any, _: _Scope) -> None:
        self._require_known(op, {"axis", "identities"})
        self._body(op, f"reduce(body, {self._tuple(op.xs)}, {op.axis})")

    def _tile_scan(self, op: Any, _: _Scope) -> None:
        self._require_known(op, {"axis", "identities", "reverse"})
        self._body(op, f"scan(body, {self._tuple(op.xs)}, {op.axis}, {op.reverse})")

    def _body(self, op: Any, call: str) -> None:
        for variable in outer_variables(op.body, op.body.params):
            if tile_bytes(variable):
                raise unknown(f"a tile from outside in the function of a reduction ({op.loc})")
            if variable.name not in self._constants:
                name = self._name(variable)
                self._write(f"{name} = captured({name})", op)
        self._write(f"def body({', '.join(map(self._name, op.body.params))}):", op)
        self._depth += 1
        self._block(op.body, _Scope(in_body=True))
        self._depth -= 1
        self._write(f"{self._targets(op.result_vars)}, = {call}", op)

    # All other operations

    def _step(self, op: Any, scope: _Scope) -> None:
        lowering = LOWERINGS.get(op.op)
        if lowering is None:
            raise unknown(f"the operation {op.op} ({op.loc})")
        self._require_known(op, lowering.attributes)
        try:
            step = lowering.handler(op)
        except KeyError as err:  # what handlers look up in their tables, such as the name of a comparison
            raise unknown(f"{err} of the operation {op.op} ({op.loc})") from err
        if self._watch is not None:
            step = self._watch(op, step)
        results = [variable for variable in op.result_vars if not isinstance(variable.try_get_type(), TokenTy)]
        if self._known_now(op, step, results):
            return
        function = f"{op.op}_{len(self._lines)}"
        unused = step.unused is not None and not any(variable.name in self._used for variable in results)
        self.globals[function] = step.unused if unused else step.function
        operands = ["run"] * step.needs_run + [self._value(operand) for operand in step.operands]
        call = f"{function}({', '.join(operands)})"
        if scope.in_body and step.needs_run:
            call = f"captured({call})"
        self._write(f"{self._targets(results)} = {call}" if results else call, op)

    def _known_now(self, op: Any, step: Step, results: Sequence[Any]) -> bool:
        """Compute the result now if nothing of the launch decides it."""
        if step.needs_run or op.memory_effect != MemoryEffect.NONE or len(results) != 1:
            return False
        try:
            operands = [self._constant(operand) for operand in step.operands]
        except KeyError:
            return False
        try:
            value = step.function(*operands)
        except Exception:  # it fails where it runs, if it does
            return False
        if isinstance(value, torch.Tensor) and value.untyped_storage().nbytes() > _MOST_CONSTANT_BYTES:
            return False
        self._constants[results[0].name] = value
        if not isinstance(value, int):
            self.globals[self._name(results[0])] = value
        return True

    def _constant(self, operand: Any) -> Any:
        if isinstance(operand, Var):
            return self._constants[operand.name]
        return None if operand is None else tuple(map(self._constant, operand))

    def _require_known(self, op: Any, attributes: frozenset[str] | set[str]) -> None:
        for name in op._attribute_names:
            if name not in attributes:
                raise unknown(f"the attribute {name} of the operation {op.op} ({op.loc})")

    # Names

    def _name(self, variable: Any) -> str:
        return self._names.setdefault(variable.name, f"v{len(self._names)}")

    def _value(self, operand: Any) -> str:
        """Source of what a step gets for an operand: a name, a literal or a tuple of these."""
        if operand is None:
            return "None"
        if not isinstance(operand, Var):
            return self._tuple(operand)
        constant = self._constants.get(operand.name)
        return repr(constant) if isinstance(constant, int) else self._name(operand)

    def _tuple(self, operands: Sequence[Any]) -> str:
        return f"({''.join(f'{self._value(operand)}, ' for operand in operands)})"

    def _targets(self, variables: Sequence[Any]) -> str:
        return ", ".join(map(self._name, variables))

    def _assign(self, targets: Sequence[Any], values: Sequence[Any], op: Any) -> None:
        if targets:
            self._write(f"{self._targets(targets)} = {', '.join(map(self._value, values))}", op)
