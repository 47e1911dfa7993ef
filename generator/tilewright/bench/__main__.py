"""Start the child process of `bench`."""

from tilewright.bench.server import main

if __name__ == "__main__":
    main()
