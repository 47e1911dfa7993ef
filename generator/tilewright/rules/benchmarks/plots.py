"""Rules about how a benchmark is named and which lines it has."""

import ast
import re
from collections.abc import Iterator

from tilewright.rules.benchmarks.examples import BENCHMARK
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module

PATH = "tests/benchmark/bench_my_op.py"
_SUFFIXES = {"-GBps": r"(?i)g(i)?b(yte)?s?\s*(/|p)\s*s", "-TFLOPS": r"(?i)t?flop"}
_FILTERED = "[backend for backend in ALL_BACKENDS if backend is not None]"  # in the example
_LISTS = ("x_names", "line_names", "line_vals")


def plots(module: Module) -> Iterator[dict[str, ast.expr]]:
    """Keywords of every `triton.testing.Benchmark`."""
    for call in module.nodes(ast.Call):
        name = module.names.resolve(call.func) or ""
        if name.endswith("testing.Benchmark"):
            yield {each.arg: each.value for each in call.keywords if each.arg is not None}


def _ending(node: ast.expr) -> ast.Constant | None:
    """The text that a plot name ends in, where it is written out."""
    if isinstance(node, ast.JoinedStr) and node.values:
        return _ending(node.values[-1])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _ending(node.right)
    return node if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


class PlotSuffix(Rule):
    """Plot name without the unit that reports look for."""

    code = "TW501"
    severity = Severity.ERROR
    why = (
        "Reports are made from lines that end in -GBps: or -TFLOPS:. A benchmark whose plot has another name "
        "runs, and is left out of every summary."
    )
    advice = "End plot_name in -GBps or -TFLOPS, as the metric is."
    snippet_path = PATH
    VALID = (BENCHMARK, BENCHMARK.replace("-GBps", "-TFLOPS").replace("GB/s", "TFLOPS"))
    INVALID = (
        BENCHMARK.replace("-GBps", ""),
        BENCHMARK.replace("-GBps", "-gbps"),
        BENCHMARK.replace("-GBps", "-performance"),
        BENCHMARK.replace('f"my-op-{dtype}-GBps"', '"my-op"'),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for plot in plots(module):
            name = plot.get("plot_name")
            if name is None:
                continue
            ending = _ending(name)
            if ending is not None and not any(str(ending.value).endswith(each) for each in _SUFFIXES):
                said = f"plot_name is {ast.unparse(name)}; it must end in -GBps or -TFLOPS"
                yield self.finding(module, name, said, fix=self._fix(module, name, plot.get("ylabel")))
            elif ending is None and isinstance(name, ast.JoinedStr) and not _may_be_unit(name.values[-1]):
                yield self.finding(
                    module,
                    name,
                    f"plot_name ends in {ast.unparse(name.values[-1])}, which is no unit; write -GBps or -TFLOPS",
                )

    def _fix(self, module: Module, name: ast.expr, label: ast.expr | None) -> Fix | None:
        text = label.value if isinstance(label, ast.Constant) and isinstance(label.value, str) else ""
        suffix = next((each for each, pattern in _SUFFIXES.items() if re.search(pattern, text)), None)
        source = module.source(name)
        if suffix is None or source[-1:] not in "\"'" or source.endswith(('"""', "'''")):
            return None
        kept = source[:-1]
        if kept.lower().endswith(suffix.lower()):
            kept = kept[: -len(suffix)]
        return Fix(f"Append {suffix}", (module.replacement(name, f"{kept}{suffix}{source[-1]}"),))


def _may_be_unit(node: ast.expr) -> bool:
    """Whether a formatted part can be the unit: a name that says so."""
    return bool(re.search(r"(?i)unit|metric|suffix|flops|gbps", ast.unparse(node)))


class PlotUnit(Rule):
    """Plot name and label of the axis with different units."""

    code = "TW502"
    severity = Severity.ERROR
    why = "Summaries take the unit from the name: bandwidth is then reported as arithmetic, or the reverse."
    advice = "Let plot_name, ylabel and the number that the benchmark returns have one unit."
    snippet_path = PATH
    VALID = (BENCHMARK,)
    INVALID = (
        BENCHMARK.replace("-GBps", "-TFLOPS"),
        BENCHMARK.replace('ylabel="GB/s"', 'ylabel="TFLOPS"'),
        BENCHMARK.replace('ylabel="GB/s"', 'ylabel="ms"'),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for plot in plots(module):
            ending = _ending(plot.get("plot_name", ast.Constant("")))
            label = plot.get("ylabel")
            suffix = next((each for each in _SUFFIXES if ending and str(ending.value).endswith(each)), None)
            if suffix is None or not isinstance(label, ast.Constant) or not isinstance(label.value, str):
                continue
            if not re.search(_SUFFIXES[suffix], label.value):
                said = f"ylabel is {label.value!r}, but plot_name ends in {suffix}: give both one unit"
                yield self.finding(module, label, said)


class BlankInName(Rule):
    """Blank in the name of a line or an axis."""

    code = "TW503"
    severity = Severity.ERROR
    why = "The header of a table is split at blanks: one name becomes two columns, and the whole table is dropped."
    advice = "Write the name without blanks, such as torch.compile or cuTile-persistent."
    snippet_path = PATH
    VALID = (BENCHMARK,)
    INVALID = (
        BENCHMARK.replace('"cuTile"', '"cuTile persistent"'),
        BENCHMARK.replace("line_names=list(names)", 'line_names=["cu Tile", "PyTorch"]'),
        BENCHMARK.replace('x_names=["N"]', 'x_names=["N columns"]'),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        lists = [value for plot in plots(module) for name, value in plot.items() if name in _LISTS]
        names = [each for node in lists for each in ast.walk(node)]
        names += [entry.elts[1] for entry in _backends(module) if len(entry.elts) > 1]
        for each in names:
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and re.search(r"\s", each.value):
                yield self.finding(
                    module,
                    each,
                    f"{each.value!r} has a blank, which splits the table: write a hyphen",
                    fix=self._fix(module, each),
                )

    def _fix(self, module: Module, node: ast.Constant) -> Fix | None:
        text = re.sub(r"\s+", "-", str(node.value).strip())
        if not text.isprintable() or '"' in text or "\\" in text:
            return None
        return Fix(f"Write {text}", (module.replacement(node, f'"{text}"'),))


def _backends(module: Module) -> Iterator[ast.Tuple]:
    """Entries (backend, name, style) of the lists of backends."""
    for node in module.nodes(ast.Assign):
        if any(isinstance(each, ast.Name) and "BACKENDS" in each.id.upper() for each in node.targets):
            for part in node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else ():
                entry = part.body if isinstance(part, ast.IfExp) else part
                if isinstance(entry, ast.Tuple):
                    yield entry


class UnfilteredBackends(Rule):
    """Backends that are not there in the lines of a plot."""

    code = "TW504"
    severity = Severity.ERROR
    why = (
        "Where a backend is missing its entry is None: unpacking it is a TypeError, and the benchmark does not "
        "even start. An entry that is always there is measured also where its backend cannot be imported."
    )
    advice = "Filter: [backend for backend in ALL_BACKENDS if backend is not None]."
    snippet_path = PATH
    VALID = (
        BENCHMARK,
        BENCHMARK.replace(_FILTERED, "list(filter(None, ALL_BACKENDS))"),
    )
    INVALID = (
        BENCHMARK.replace(_FILTERED, "ALL_BACKENDS"),
        BENCHMARK.replace(_FILTERED, "ALL_BACKENDS[:-1]"),
        BENCHMARK.replace(' if is_backend_available("cutile") else None', ""),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for node in module.nodes(ast.Assign):
            names = [each.id for each in node.targets if isinstance(each, ast.Name)]
            optional = isinstance(node.value, ast.List | ast.Tuple) and any(
                isinstance(each, ast.IfExp) and isinstance(each.orelse, ast.Constant) and each.orelse.value is None
                for each in node.value.elts
            )
            for name in names if optional else ():
                for use in module.nodes(ast.Name):
                    if use.id == name and isinstance(use.ctx, ast.Load) and not _is_filtered(module, use):
                        yield self.finding(module, use, f"{name} is used with its None entries: filter them out")
        for entry in _backends(module):
            match entry.elts:
                case [ast.Constant(value="cutile"), *_] if not isinstance(module.parent(entry), ast.IfExp):
                    yield self.finding(
                        module, entry, "cutile is a line also where is_backend_available says no: leave it out there"
                    )


def _is_filtered(module: Module, use: ast.Name) -> bool:
    parent = module.parent(use)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "filter":
        return True
    if isinstance(parent, ast.comprehension):
        return bool(parent.ifs)
    if isinstance(parent, ast.For):
        return any(isinstance(each, ast.If) for each in ast.walk(parent))
    return isinstance(parent, ast.Compare) or (isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "len")
