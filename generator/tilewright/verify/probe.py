"""Child process of the registration step: import the package of a host and say which backends its operators have."""

import importlib
import json
import sys

import torch

from tilewright.aot.standin import StandIn
from tilewright.cutile.targets import TARGETS


def main() -> None:
    """Print one line of JSON, after whatever the imports print."""
    package, backend, functions = sys.argv[1:]
    if not torch.cuda.is_available():
        StandIn(TARGETS[0]).install()  # some modules of TileGym ask for the GPU while they are imported
    try:
        operators = importlib.import_module(package)
        backends_of = importlib.import_module(backend).get_available_backends_for_op
        found = {
            name: {"backends": sorted(backends_of(name)), "exported": callable(getattr(operators, function, None))}
            for name, function in json.loads(functions).items()
        }
    except (Exception, SystemExit) as error:
        sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())}")
    print("\n" + json.dumps({"operators": found}))


if __name__ == "__main__":
    main()
