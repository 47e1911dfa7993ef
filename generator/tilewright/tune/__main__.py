"""Start a child process of `tune`."""

from tilewright.tune.worker import main

if __name__ == "__main__":
    main()
