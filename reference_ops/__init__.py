"""cuTile operators: every folder in here is one, importable by its name."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    if _module.ispkg:
        globals()[_module.name] = getattr(import_module(f"{__name__}.{_module.name}"), _module.name)
