"""Start the child process of `compile`."""

import gc


def main() -> None:
    """Serve one request without garbage collection: it costs a fifth of the imports, and unshares forked memory."""
    gc.disable()
    from tilewright.aot.server import serve

    serve()


if __name__ == "__main__":
    main()
