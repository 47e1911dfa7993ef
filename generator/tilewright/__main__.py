"""Run the command line with `python -m tilewright`."""

from tilewright.cli.app import main

if __name__ == "__main__":
    main()
