"""Choose an implementation of an operator by name of its backend."""

import functools

_implementations = {}
_current = "cutile"


def get_current_backend():
    return _current


def is_backend_available(backend):
    return backend == "cutile"


def set_backend(backend):
    global _current
    _current = backend


def get_available_backends_for_op(name):
    return list(_implementations.get(name, {}))


def register_impl(name, backend):
    def decorate(function):
        _implementations.setdefault(name, {})[backend] = function
        return function

    return decorate


def dispatch(name):
    def decorate(stub):
        @functools.wraps(stub)
        def call(*args, **kwargs):
            return _implementations.get(name, {}).get(_current, stub)(*args, **kwargs)

        return call

    return decorate
