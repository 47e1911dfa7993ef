"""No name that an operator or a formula can have is used by the rendered code for something else."""

import ast
import builtins
import keyword
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tilewright.catalogue.data_file import read_data
from tilewright.catalogue.formula import RESERVED

from .conftest import BATCH
from .conftest import rendered

PARTIALS = BATCH.folder / "_partials"
LAYOUTS = ["standalone", "tilegym", "single_file", "stub"]
OP = "some_op"
# Names of a formula that nothing else has.
OWN = {"zza", "zzb", "zzc", "zzd"}
TILES = {f"t{name}" for name in (*OWN, "acc", "grad")}  # the formula is checked for these itself
FORMULAS: list[dict[str, Any]] = [
    {"formula": "zza * exp(zza) * zzc, zzc=1.0", "grad_formula": "grad * zzc"},
    {"formula": "zzd = zza * zzb; zzd * zzc, zzc=1.0", "grad_formula": "grad * zzb; grad * zza"},
    {"formula": "zza * tanh(zzb) * zzc, zzc=1.0", "dtypes": ["float64", "float32"]},
    {"formula": "zza * zzb + 2", "dtypes": ["int32", "int64"]},
    {"formula": "zza"},
]
EPILOGUES: list[dict[str, Any]] = [
    {"family": family, "bias": True, "epilogue": epilogue, **answers}
    for family, answers in (
        ("matmul", {"variant": "matmul", "precision": "3xtf32"}),
        ("matmul", {"variant": "bmm", "precision": "3xtf32"}),
        ("matmul", {"variant": "linear", "precision": "3xtf32"}),
        ("scaled_matmul", {"dtypes": ["float8_e4m3fn", "float8_e5m2"]}),
        ("conv", {"variant": "conv2d", "precision": "3xtf32"}),
        ("conv", {"variant": "conv3d", "precision": "3xtf32"}),
        ("conv_transpose", {"variant": "conv_transpose2d", "precision": "3xtf32"}),
    )
    for epilogue in ("relu(acc) * zza * zzc, zzc=1.0", "zzd = acc * zzc; zzd, zzc=1.0", "acc")
]
VARIANTS: list[dict[str, Any]] = [
    *({"family": "gated", "variant": name, "backward": True} for name in ("silu_and_mul", "gelu_and_mul", "swiglu")),
    *({"family": "softmax", "variant": name, "backward": True} for name in ("softmax", "log_softmax")),
    *({"family": "row_norm", "variant": name, "backward": True} for name in ("rms_norm", "layer_norm", "add_rms_norm")),
    *({"family": "rope", "variant": name, "backward": True} for name in ("half", "interleaved")),
    {"family": "cross_entropy", "variant": "cross_entropy", "backward": True},
    {"family": "cross_entropy", "variant": "linear_cross_entropy", "precision": "3xtf32", "backward": True},
    {"family": "dropout", "backward": True},
    *({"family": "recurrent", "variant": name, "precision": "3xtf32"} for name in ("lstm", "gru")),
    *({"family": "channel_norm", "variant": name, "backward": True} for name in ("group_norm", "batch_norm")),
    *({"family": "scan", "variant": name} for name in ("cumsum", "cummax")),
    *({"family": "pool", "variant": name} for name in ("max_pool_with_indices", "avg_pool", "adaptive_avg_pool")),
    *({"family": "movement", "variant": name} for name in ("transpose", "permute", "cat", "pad")),
    {"family": "topk"},
    {"family": "histogram", "variant": "histc", "dtypes": ["float32", "bfloat16", "float64", "int32"]},
    {"family": "histogram", "variant": "bincount"},
    *({"family": "quantize", "variant": name} for name in ("fp8", "int8")),
    *(
        {"family": "embedding", "variant": name, "backward": True, "dtypes": ["float64"]}
        for name in ("embedding", "gather", "scatter_add")
    ),
    *(
        {"family": "attention", "variant": name, "precision": "3xtf32", "backward": True}
        for name in ("prefill", "varlen")
    ),
    {"family": "attention_decode", "precision": "3xtf32"},
    {"family": "grouped_matmul", "precision": "3xtf32"},
    *({"family": "reduction", "variant": name} for name in ("sum", "mean", "max", "argmax", "logsumexp")),
]


def modules(answers: dict[str, Any], layout: str) -> Iterator[tuple[str, ast.Module]]:
    """The Python files of an operator, by name."""
    for file in rendered({"op": OP, "layout": layout, **answers}).files:
        if file.path.suffix == ".py" and not file.shared:
            yield file.path.name, ast.parse(file.content)


def bound(node: ast.AST) -> set[str]:
    """What a piece of code assigns or takes as a parameter."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return names | {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}


def loaded(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


def defined(tree: ast.Module) -> set[str]:
    """What a module defines or imports."""
    names = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name):
                names.add(name)
            case ast.Import(aliases) | ast.ImportFrom(names=aliases):
                names |= {(alias.asname or alias.name).split(".")[0] for alias in aliases}
            case ast.Assign():
                names |= bound(node)
    return names


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def used(node: ast.AST, own: set[str]) -> set[str]:
    """All names in a piece of code but the loop variables of comprehensions, which hide `own` only from themselves."""
    match node:
        case ast.Name(name) | ast.arg(name):
            return {name}
        case ast.FunctionDef(args=arguments, body=body):
            return set().union(used(arguments, own), *(used(statement, own) for statement in body))
    names: set[str] = set().union(*(used(child, own) for child in ast.iter_child_nodes(node)))
    if isinstance(node, ast.GeneratorExp | ast.ListComp) and not own & loaded(node.elt):
        names -= set().union(*(bound(part.target) for part in node.generators))
    return names


def possible(names: set[str]) -> set[str]:
    """Those that an operator or a formula could have."""
    return {name for name in names if re.fullmatch("[a-z][a-z0-9]*(_[a-z0-9]+)*", name)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("answers", FORMULAS, ids=str)
def test_a_name_of_a_formula_is_used_for_nothing_else(answers, layout):
    for file, tree in modules(answers, layout):
        for function in functions(tree):
            if OWN & bound(function):
                taken = possible(used(function, OWN)) - OWN - TILES - {OP, f"reference_{OP}"}
                assert taken <= RESERVED, f"{file}: {function.name}"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("answers", EPILOGUES, ids=str)
def test_a_name_of_an_epilogue_is_used_for_nothing_else(answers, layout):
    template = (PARTIALS / "formula.jinja").read_text()
    family = answers["family"]
    own = set(
        re.findall(r"'(\w+)'", re.search(rf"set taken_by_{family.removesuffix('_transpose')} = (\[.*?\])", template)[1])
    ) | {"x", "weight"}
    for file, tree in modules(answers, layout):
        for function in functions(tree):
            if OWN & bound(function):
                taken = possible(used(function, OWN)) - OWN - TILES - {OP, f"reference_{OP}"}
                assert taken <= RESERVED | own, f"{file}: {function.name}"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("answers", [*FORMULAS, *EPILOGUES, *VARIANTS], ids=str)
def test_the_name_of_an_operator_is_used_for_nothing_else(answers, layout):
    known = {*read_data(PARTIALS / "names.yml")["taken"].split(), *keyword.softkwlist, "type"}
    for file, tree in modules(answers, layout):
        taken = defined(tree) | (loaded(tree) & {*dir(builtins)})
        for function in functions(tree):
            if OP in loaded(function):
                taken |= bound(function)
        if file.startswith(("test_", "bench_")):  # ruff finds a loop variable that hides an import
            taken |= set().union(*(bound(node.target) for node in ast.walk(tree) if isinstance(node, ast.For)))
        assert possible(taken) - OWN - {OP, f"reference_{OP}", f"bench_{OP}"} <= known, file
