"""What a name means: `ct.load`, `cuda.tile.load` and `from cuda.tile import load` are the same function."""

import ast


class Names:
    """Names that imports bind anywhere in a module, and module-level aliases of them."""

    def __init__(self, tree: ast.Module) -> None:
        self._meanings: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    self._meanings[bound] = alias.name if alias.asname else bound
            elif isinstance(node, ast.ImportFrom):
                origin = "." * node.level + (node.module or "")
                for alias in node.names:
                    self._meanings[alias.asname or alias.name] = (
                        f"{origin}.{alias.name}" if node.module else origin + alias.name
                    )
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target = statement.targets[0]
                meaning = self.resolve(statement.value)
                if isinstance(target, ast.Name) and meaning is not None and target.id not in self._meanings:
                    self._meanings[target.id] = meaning

    def resolve(self, node: ast.AST) -> str | None:
        """The dotted name of what a Name or Attribute refers to, or None where no import says.

        Relative imports keep their dots: `from .utils import f` gives ".utils.f".
        """
        if isinstance(node, ast.Name):
            return self._meanings.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.resolve(node.value)
            return f"{owner}.{node.attr}" if owner else None
        return None

    def tile(self, node: ast.AST) -> str | None:
        """The name below `cuda.tile` ("load", "float32", "tune.exhaustive_search"), or None if it is none of it."""
        meaning = self.resolve(node)
        return meaning.removeprefix("cuda.tile.") if meaning and meaning.startswith("cuda.tile.") else None

    def torch(self, node: ast.AST) -> str | None:
        """The name below `torch` ("empty", "nn.functional.linear"), or None if it is none of it."""
        meaning = self.resolve(node)
        return meaning.removeprefix("torch.") if meaning and meaning.startswith("torch.") else None

    def backend(self, node: ast.AST) -> str | None:
        """The name below a package's `backend` module ("dispatch", "register_impl", "set_backend"), or None."""
        meaning = self.resolve(node)
        if not meaning:
            return None
        origin, _, name = meaning.rpartition(".")
        parts = origin.split(".")
        return name if "backend" in parts[-2:] else None
