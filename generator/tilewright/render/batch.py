"""Render many operators from one template: what copier reads, parses and compiles again for each is kept."""

import pickle
from collections.abc import Callable
from collections.abc import Mapping
from functools import cached_property
from functools import lru_cache
from pathlib import Path
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from tilewright.render.scaffold import RenderedFile
from tilewright.render.scaffold import Rendering
from tilewright.render.scaffold import errors_of_copier
from tilewright.render.scaffold import matcher

_KEPT = 4096  # compiled strings; a template has a few hundred, most of them the same for every operator


class Batch:
    """One template folder, rendered as `copier copy` and `copier update` render it, in memory."""

    def __init__(self, template: Path) -> None:
        self.folder = template

    def render(
        self,
        answers: Mapping[str, Any],
        destination: Path,
        *,
        source: str,
        recorded: bool,
        changed: Mapping[str, Any] = MappingProxyType({}),
    ) -> Rendering:
        """One operator; `source` is where its record says that the template is.

        With `recorded` the answers are those of an earlier version, as in an update: one that this version does not
        accept gives way to the default. `changed` are answers that somebody gives now, in the place of recorded ones.

        Raises:
            UsageError: The template does not accept an answer.
            RenderError: The template fails.
        """
        computed = {"destination": str(destination), "source": str(destination) if source == "." else source}
        with errors_of_copier():
            given, last = ({}, dict(answers)) if recorded else (answers, {})
            data = {**given, **changed, **computed}
            worker = _worker(self, data=data, last=last, destination=destination)
            worker.run_copy()
            hidden = worker.answers.hidden
            kept = {**worker.answers.last, **worker.answers.init, **worker.answers.user}
            questions = worker.template.questions_data
            return Rendering(
                files=tuple(sorted(worker.files, key=lambda file: file.path)),
                answers={key: kept[key] for key in questions if key in kept and key not in hidden},
            )

    @cached_property
    def template(self) -> Any:
        """What copier knows of the template; read once."""
        from copier._template import Template

        return Template(url=str(self.folder))

    @cached_property
    def is_shared(self) -> Callable[[PurePosixPath], bool]:
        """Whether a file belongs to the host rather than to the operator."""
        return matcher(self.template.skip_if_exists)

    @cached_property
    def is_excluded(self) -> Callable[[PurePosixPath], bool]:
        """Whether the template leaves a file alone, also one that an earlier version made."""
        return matcher(self.template.exclude)

    @cached_property
    def environment(self) -> Any:
        """The Jinja environment, which keeps what it has compiled and parsed."""
        from copier._main import Worker

        worker = Worker(src_path=str(self.folder), quiet=True)
        environment: Any = worker.jinja_env
        environment.from_string = lru_cache(_KEPT)(environment.from_string)
        environment.filters["from_yaml"] = _remembered(environment.filters["from_yaml"])
        return environment


def _remembered(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """A fresh copy of what was parsed before: a template may change what it gets."""
    pickled = lru_cache(_KEPT)(lambda text: pickle.dumps(parse(text)))
    return lambda text: pickle.loads(pickled(str(text)))


def _worker(batch: Batch, *, data: dict[str, Any], last: dict[str, Any], destination: Path) -> Any:
    """Copier's worker, with what is the same for all operators put in and the files taken out."""
    from copier._main import Worker
    from copier._subproject import Subproject

    worker = Worker(
        src_path=str(batch.template.url), dst_path=destination, data=data, defaults=True, overwrite=True, quiet=True
    )
    subproject = Subproject(local_abspath=destination)
    files: list[RenderedFile] = []

    def take(target: Path, is_dir: bool = False, expected_contents: bytes = b"", **_others: Any) -> bool:
        if not is_dir:
            path = PurePosixPath(target.as_posix())
            files.append(RenderedFile(path=path, content=expected_contents, shared=batch.is_shared(path)))
        return False  # nothing is written

    # Cached properties of copier's: what is in the dictionary is not computed.
    vars(subproject)["last_answers"] = last
    vars(worker).update(
        files=files,
        template=batch.template,
        jinja_env=batch.environment,
        subproject=subproject,
        _render_allowed=take,
    )
    return worker
