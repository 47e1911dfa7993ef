"""Type-check and specialise a kernel with the front end of the installed compiler, giving its typed IR.

Only the passes that do not change what a kernel computes are run, so neither `tileiras` nor a driver is needed. All
private names of cuda-tile that the interpreter uses, beside the classes of operations and types, are in this module.
"""

import inspect
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from cuda.tile import _compile as compiler
from cuda.tile._ir import ir
from cuda.tile._ir.ops import tile_impl_registry
from cuda.tile._passes import ast2hir
from cuda.tile._passes.check_dtype_support import check_dtype_support
from cuda.tile._passes.dce import dead_code_elimination_pass
from cuda.tile._passes.eliminate_assign_ops import eliminate_assign_ops
from cuda.tile._passes.hir2ir import hir2ir

from tilewright.interpret.faults import LaunchError
from tilewright.interpret.refusals import require_compilable

TESTED_RELEASES = ("1.5", "1.6", "1.7")


@dataclass(frozen=True, slots=True)
class TypedKernel:
    """A kernel specialised for one signature: `body.params` are the variables of the launch's flat arguments."""

    name: str
    body: Any
    constraints: tuple[Any, ...]  # of the parameters that are no constants, in the order of `body.params`


def typed_kernel(annotated_function: Any, parameters: Sequence[Any], arch: str) -> TypedKernel:
    """The typed IR of a kernel for these constraints of its parameters on this architecture.

    Raises the compiler's own errors (`cuda.tile.TileError`, TypeError), those of tileiras too, and `LaunchError` for a
    function without source.
    Safe to call from several threads.
    """
    _warn_of_untested_release()
    with compiler._compiler_lock:
        return _typed_kernel(annotated_function, parameters, arch)


def _typed_kernel(annotated_function: Any, parameters: Sequence[Any], arch: str) -> TypedKernel:
    function = annotated_function.pyfunc
    hir = _function_hir(function)
    release = compiler._SUPPORTED_VERSIONS[-1]
    context = ir.IRContext(log_ir_on_error=False, tileiras_version=release, typing_hooks=compiler._TileTypingHooks())
    with ir.Builder(context, hir.body.loc) as builder, tile_impl_registry.as_current():
        kernel_parameters = compiler._create_kernel_parameters(
            parameters,
            annotated_function.parameter_annotations,
            tuple(annotated_function.pysig.parameters),
            hir.param_locs,
            context,
        )
        hir2ir(hir, kernel_parameters.aggregate_vars, context)
    body = ir.Block(context, hir.body.loc)
    flat = kernel_parameters.nonconstant_flat_vars
    body.params = tuple(variable for variables, _ in flat for variable in variables)
    body.extend(builder.ops)
    eliminate_assign_ops(body)
    dead_code_elimination_pass(body)
    check_dtype_support(body, arch, release)
    require_compilable(body)
    return TypedKernel(function.__name__, body, tuple(constraint for _, constraint in flat))


def _function_hir(function: Any) -> Any:
    if function.__name__ == "<lambda>":
        raise LaunchError("a kernel cannot be a lambda\ndefine it with def")
    # cuda-tile 1.6 replaced the flag by an enumeration.
    mode = {"mode": ast2hir.HirMode.ENTRY_POINT} if hasattr(ast2hir, "HirMode") else {"entry_point": True}
    try:
        return ast2hir.get_function_hir(function, **mode)
    except OSError as err:
        raise LaunchError(
            f"the source of kernel {function.__name__} cannot be read: {err}\n"
            "kernels are compiled from their source; define them in a file"
        ) from err


@cache
def _warn_of_untested_release() -> None:
    installed = version("cuda-tile")
    if re.match(r"\d+\.\d+", installed)[0] not in TESTED_RELEASES:  # type: ignore[index]
        warnings.warn(
            f"cuda-tile {installed} is installed; the interpreter is tested with {', '.join(TESTED_RELEASES)}",
            stacklevel=2,
        )


def is_kernel(value: Any) -> bool:
    """Whether a value is a kernel of cuTile."""
    return hasattr(value, "_annotated_function") and inspect.isfunction(value._annotated_function.pyfunc)
