"""What the statements of a module bind, outside of functions and classes."""

import libcst as cst


class _Bindings(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: dict[str, list[cst.CSTNode]] = {}

    def _bind(self, name: str, node: cst.CSTNode) -> None:
        self.found.setdefault(name, []).append(node)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self._bind(node.name.value, node)
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        self._bind(node.name.value, node)
        return False

    def visit_Import(self, node: cst.Import) -> bool:
        for alias in node.names:
            self._bind(alias.evaluated_alias or alias.evaluated_name.split(".")[0], node)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        for alias in () if isinstance(node.names, cst.ImportStar) else node.names:
            self._bind(alias.evaluated_alias or alias.evaluated_name, node)
        return False

    def visit_AssignTarget(self, node: cst.AssignTarget) -> bool:
        if isinstance(node.target, cst.Name):
            self._bind(node.target.value, node)
        return False

    def visit_AnnAssign(self, node: cst.AnnAssign) -> bool:
        if isinstance(node.target, cst.Name):
            self._bind(node.target.value, node)
        return False


def bindings(module: cst.Module) -> dict[str, list[cst.CSTNode]]:
    """Statements by the names that they bind."""
    visitor = _Bindings()
    module.visit(visitor)
    return visitor.found
