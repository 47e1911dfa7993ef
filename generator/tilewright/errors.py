"""Every error tilewright raises, and the tree they form.

TilewrightError                     exit code
├── UsageError (ValueError)         2   a name, option, formula or file that cannot be used as given
│   ├── OperatorExistsError         2   the operator is already there
│   ├── HostError                   2   the repository is not one that tilewright can work in
│   └── RegistrationError           2   a shared file does not have the shape that the codemod knows
├── RenderError                     2   the template refused or failed
├── MissingError                    3   something the request needs is not installed or not present
└── NothingRanError                 5   no operator, case or step was executed
"""


class TilewrightError(Exception):
    """What is, what should be and what to do, in at most three lines."""

    exit_code = 2

    def __init__(self, what: str, *, expected: str = "", hint: str = "") -> None:
        self.what = what
        self.expected = expected
        self.hint = hint
        super().__init__("\n".join(line for line in (what, expected, hint) if line))


class UsageError(TilewrightError, ValueError):
    """A name, option, formula or file that cannot be used as given."""


class OperatorExistsError(UsageError):
    """The operator is already there."""


class HostError(UsageError):
    """The repository is not one that tilewright can work in."""


class RegistrationError(UsageError):
    """A shared file does not have the shape that the codemod knows."""


class RenderError(TilewrightError):
    """The template refused or failed."""


class MissingError(TilewrightError):
    """Something the request needs is not installed or not present."""

    exit_code = 3


class NothingRanError(TilewrightError):
    """No operator, case or step was executed."""

    exit_code = 5
