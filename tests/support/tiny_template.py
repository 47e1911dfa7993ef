"""A template of plain files, whose next release changes them in any way that a test wants."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.support.releases import commit
from tests.support.releases import git
from tilewright.render import Source
from tilewright.render import locate

QUESTIONS = """\
_min_copier_version: "9.19.0"
_subdirectory: "{sub}{{{{ layout }}}}"
_answers_file: ".tilewright/ops/{{{{ op }}}}.yml"
_skip_if_exists: [/.tilewright/host.yml]
template_version: {{type: str, when: false, default: "{version}"}}
partials: {{type: str, when: false, default: "{sub}_partials"}}
source: {{type: str, when: false, default: "{{{{ {source} | string | realpath }}}}"}}
destination: {{type: str, when: false, default: "{{{{ _copier_conf.dst_path | string | realpath }}}}"}}
op: {{type: str}}
layout: {{type: str, default: standalone}}
package: {{type: str, default: my_ops}}
"""
OPERATOR = "template/standalone/{{ package }}/{{ op }}"
HOST = "layout: standalone\npackage: my_ops\n"


def write_release(root: Path, version: str, files: Mapping[str, bytes]) -> Source:
    """Commit and tag a release in which the operator has exactly these files."""
    installed = locate()
    shutil.rmtree(root / "template", ignore_errors=True)
    standalone = root / "template" / "standalone"
    (standalone / ".tilewright").mkdir(parents=True)
    (standalone / ".tilewright" / "host.yml").write_text(HOST)
    (root / "copier.yml").write_text(
        QUESTIONS.format(version=version, sub="template/", source="_copier_answers._src_path")
    )
    (root / "template" / "copier.yml").write_text(
        QUESTIONS.format(version=version, sub="", source="_copier_conf.src_path")
    )
    shutil.copytree(installed.partials, root / "template" / "_partials", ignore=lambda folder, names: _others(names))
    record = "{{ _copier_conf.answers_file }}.jinja"
    shutil.copy(installed.template / "standalone" / record, standalone / record)
    for name, content in files.items():
        path = root / OPERATOR / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    commit(root, version)
    git(root, "tag", f"v{version}")
    return Source(root=root, recorded=None)


def _others(names: list[str]) -> list[str]:
    return [name for name in names if name != "answers.jinja"]
