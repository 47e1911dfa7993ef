"""Choose, at call time, which backend's implementation of an operator runs.

The names are TileGym's, so that an operator can move there unchanged.
"""

import functools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

_REGISTRY: dict[str, dict[str, Callable[..., Any]]] = {}
_PACKAGES = {"cutile": "cuda.tile", "triton": "triton", "torch": "torch"}  # what each backend needs installed
_current = "cutile"


@functools.cache
def is_backend_available(backend: str) -> bool:
    """Whether the package that a backend is written in is installed."""
    try:
        return backend in _PACKAGES and find_spec(_PACKAGES[backend]) is not None
    except ModuleNotFoundError:  # the parent of a dotted name is missing
        return False


def get_available_backends() -> list[str]:
    """Names of the backends that are installed."""
    return [backend for backend in _PACKAGES if is_backend_available(backend)]


def get_current_backend() -> str:
    """Backend that runs when a call does not name one."""
    return _current


def set_backend(backend: str) -> None:
    """Make `backend` the one that runs when a call does not name one.

    Raises:
        ValueError: The backend is not installed.
    """
    global _current
    if not is_backend_available(backend):
        raise ValueError(f"backend {backend!r} is not available; installed: {', '.join(get_available_backends())}")
    _current = backend


def dispatch(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Turn a stub into the operator `name`; a call runs the implementation of the chosen backend."""

    def decorate(stub: Callable[..., Any]) -> Callable[..., Any]:
        implementations = _REGISTRY.setdefault(name, {})

        @functools.wraps(stub)
        def operator(*args: Any, backend: str | None = None, **kwargs: Any) -> Any:
            if backend is not None and backend not in implementations:
                raise NotImplementedError(f"{name} is not implemented for {backend}; it is for {list(implementations)}")
            return implementations.get(backend or _current, stub)(*args, **kwargs)

        return operator

    return decorate


def register_impl(name: str, backend: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as the implementation of operator `name` on `backend`."""

    def decorate(implementation: Callable[..., Any]) -> Callable[..., Any]:
        _REGISTRY.setdefault(name, {})[backend] = implementation
        return implementation

    return decorate


def get_available_backends_for_op(name: str) -> list[str]:
    """Backends that have an implementation of operator `name`."""
    return list(_REGISTRY.get(name, {}))


def has_backend_impl(name: str, backend: str) -> bool:
    """Whether operator `name` has an implementation on `backend`."""
    return backend in _REGISTRY.get(name, {})
