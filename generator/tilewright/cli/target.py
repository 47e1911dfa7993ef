"""Decide where a new operator goes: the host around a folder, or a new one there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.config import PROFILE
from tilewright.config import find_host
from tilewright.errors import HostError
from tilewright.errors import UsageError
from tilewright.model.host import Host
from tilewright.render import Source


def choose_target(folder: Path, answers: Mapping[str, Any], source: Source) -> tuple[Path, dict[str, Any]]:
    """The root of the host, and the answers together with what the host settles."""
    try:
        folder = folder.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, before Python 3.13
        raise UsageError(f"{folder} leads nowhere: {error}", expected="expected a folder") from error
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", expected="expected a folder", hint="name the folder of the repository")
    if folder.is_relative_to(source.template):
        raise UsageError(f"{folder} is inside the template", expected="expected the folder of your own repository")
    if answers.get("layout") == "stub":
        raise UsageError(
            "a stub alone is no layout for an operator",
            expected="expected standalone, tilegym or single_file",
            hint="to complete a registration in TileGym: tilewright register OP",
        )
    if answers.get("layout") == "single_file":
        return folder, dict(answers)
    host = find_host(folder)
    if host is None:
        return folder, dict(answers)
    if not (host.root / PROFILE).exists():  # detected only, so an option may say otherwise
        return host.root, {"layout": host.layout, **answers}
    settled: dict[str, str] = {"layout": host.layout}
    if host.layout == "standalone":
        settled["package"] = host.package
    for key, value in settled.items():
        if answers.get(key, value) != value:
            raise HostError(
                f"{host.root} has the {key} {value}",
                expected=f"expected the same {key} for all of its operators, not {answers[key]}",
                hint=f"leave --{key} out, or run this in another folder",
            )
    return host.root, {**answers, **settled}


def require_host() -> Host:
    """The host around the current folder."""
    host = find_host(Path())
    if host is None:
        raise HostError(
            f"no host repository at or above {Path().resolve()}",
            expected="expected a folder with .tilewright/host.yml, or a TileGym checkout",
            hint="go there, or make one: tilewright new my_op",
        )
    return host
