"""Comments that ignore a finding without a reason, without effect, or by a code that does not exist."""

import difflib
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence
from dataclasses import replace

from tilewright.rules.finding import Edit
from tilewright.rules.finding import Finding
from tilewright.rules.finding import Fix
from tilewright.rules.finding import Severity
from tilewright.rules.ignores import Ignore
from tilewright.rules.rule import Rule
from tilewright.rules.source import Module


class CommentRule(Rule):
    """A rule about the ignore comments of a file, after all others have run."""

    def check_comments(self, module: Module, comments: Sequence[Ignore], run: Collection[str]) -> Iterator[Finding]:
        """What is wrong with the comments, given the codes of the rules that were run."""
        raise NotImplementedError

    def at(self, module: Module, ignore: Ignore, message: str) -> Finding:
        """A finding at a comment."""
        line, column = ignore.comment.line, ignore.comment.column
        return replace(
            self.finding(module, module.tree, message),
            line=line,
            column=column,
            end_line=line,
            end_column=column + len(ignore.comment.text),
        )


class IgnoreWithoutReason(CommentRule):
    """A comment that ignores a finding and does not say why."""

    code = "TW002"
    severity = Severity.WARNING
    why = "The next reader cannot tell whether the finding was understood or silenced."
    advice = "Write the reason behind the codes: # tw: ignore[TW203] the host pads the array."
    VALID = ("x = 1  # an ordinary comment\n",)
    INVALID = ("x = 1  # tw: ignore[TW004]\n", "# tw: ignore\nx = 1\n")

    def check_comments(
        self,
        module: Module,
        comments: Sequence[Ignore],
        run: Collection[str],  # noqa: ARG002
    ) -> Iterator[Finding]:
        """Comments without a code or without a reason."""
        for ignore in comments:
            if not ignore.codes:
                yield self.at(module, ignore, "the comment names no code: write # tw: ignore[CODE] reason")
            elif not ignore.reason:
                yield self.at(
                    module, ignore, f"the comment ignores {', '.join(ignore.codes)} and gives no reason: add it"
                )


class UnknownIgnore(CommentRule):
    """A comment that ignores a code that does not exist."""

    code = "TW003"
    severity = Severity.WARNING
    why = "The comment has no effect."
    advice = "Use a code that tilewright check has shown."
    VALID = ("x = 1\n",)
    INVALID = ("x = 1  # tw: ignore[TW0O1] the letter O\n", "x = 1  # tw: ignore[E501] of another tool\n")

    def check_comments(
        self,
        module: Module,
        comments: Sequence[Ignore],
        run: Collection[str],  # noqa: ARG002
    ) -> Iterator[Finding]:
        """Codes of no rule, with the nearest."""
        from tilewright.rules.registry import all_rules

        known = [rule.code for rule in all_rules()]
        for ignore in comments:
            for code in ignore.codes:
                if code not in known:
                    near = difflib.get_close_matches(code, known, n=1, cutoff=0.5)
                    yield self.at(module, ignore, f"no rule {code}" + (f"; did you mean {near[0]}?" if near else ""))


class UnusedIgnore(CommentRule):
    """A comment that ignores a finding that is not there."""

    code = "TW004"
    severity = Severity.WARNING
    why = "It hides the finding when it comes back."
    advice = "Remove the comment, or the code that has no effect."
    VALID = ("x = 1\n",)
    INVALID = (
        "x = 1  # tw: ignore[TW101] no dispatcher here\n",
        "# tw: ignore[TW101, TW102] no dispatcher here\nx = 1\n",
    )

    def check_comments(self, module: Module, comments: Sequence[Ignore], run: Collection[str]) -> Iterator[Finding]:
        """Codes that took nothing back although their rules were run."""
        for ignore in comments:
            for code in ignore.codes:
                if code in run and code not in ignore.used:
                    finding = self.at(module, ignore, f"{code} is not found here: the comment has no effect; remove it")
                    yield replace(finding, fix=_without(module, ignore, code))


def _without(module: Module, ignore: Ignore, code: str) -> Fix:
    """Take the code out of the comment, or the comment with the space before it, or its line."""
    line, text = ignore.comment.line, module.lines[ignore.comment.line - 1]
    kept = [each for each in ignore.codes if each != code]
    start, end, left = ignore.comment.column, len(text) + 1, ""
    if kept:
        left = f"# tw: ignore[{', '.join(kept)}] {ignore.reason}"
    elif ignore.comment.alone:
        edit = Edit(line=line, column=1, end_line=line + 1, end_column=1, text="")
        return Fix("remove the comment", (edit,))
    else:
        start = len(text[: start - 1].rstrip()) + 1
    edit = Edit(line=line, column=start, end_line=line, end_column=end, text=left)
    return Fix(f"ignore {code} no more", (edit,))
