"""Every example in the documentation of the installed cuda-tile prints here what it prints there."""

import inspect
import re
import runpy
from collections.abc import Iterator
from textwrap import dedent
from textwrap import indent

import cuda.tile as ct
import pytest

from tilewright.interpret import enabled

EXAMPLE = re.compile(
    r"^(?P<margin> *)\.\. testcode::\n(?P<options>(?:(?P=margin) +:.*\n)*)\n(?P<code>(?:(?P=margin) +.*\n|\n)+)"
    r"(?P=margin)\.\. testoutput::\n(?:(?P=margin) +:.*\n)*\n(?P<output>(?:(?P=margin) +.*(?:\n|$)|\n)+)",
    re.MULTILINE,
)
SETUP = "import math\n\nimport cuda.tile as ct\nimport torch\n\nstream = torch.cuda.current_stream()\n"
# What the documentation leaves to the reader: a body only, to be put into a kernel and launched.
WRAPPER = "\n\n@ct.kernel\ndef kernel():\n{body}\n\nct.launch(stream, (1,), kernel, ())\n"


def documented() -> Iterator[tuple[str, str]]:
    """Qualified names of the public objects of cuda.tile, with their docstrings."""
    for name, value in sorted(vars(ct).items()):
        if name.startswith("_") or inspect.ismodule(value):
            continue
        yield name, getattr(value, "__doc__", None) or ""
        if inspect.isclass(value):
            for member, attribute in sorted(vars(value).items()):
                attribute = attribute.fget if isinstance(attribute, property) else attribute
                if not member.startswith("_"):
                    yield f"{name}.{member}", getattr(attribute, "__doc__", None) or ""


def examples() -> Iterator[object]:
    for name, text in documented():
        for number, match in enumerate(EXAMPLE.finditer(text + "\n")):
            code = dedent(match["code"]).strip("\n")
            wrapped = "kernel_wrapper" in match["options"]
            script = SETUP + (WRAPPER.format(body=indent(code, "    ")) if wrapped else f"\n{code}\n")
            yield pytest.param(script, dedent(match["output"]).strip(), id=f"{name}-{number}")


EXAMPLES = list(examples())


def test_there_are_examples():
    assert len(EXAMPLES) > 50


@pytest.mark.parametrize(("script", "output"), EXAMPLES)
def test_example(script, output, tmp_path, capsys):
    file = tmp_path / "example.py"
    file.write_text(script)
    with enabled(arch="sm_100"):
        if output.startswith("Traceback"):
            name, _, message = output.splitlines()[-1].partition(": ")
            with pytest.raises(ct.TileError, match=".*".join(map(re.escape, message.split("...")))) as raised:
                runpy.run_path(str(file))
            assert raised.type.__name__ == name
        else:
            runpy.run_path(str(file))
            assert capsys.readouterr().out.strip() == output
