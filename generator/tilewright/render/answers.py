"""Turn texts from the command line into answers, checked: copier itself ignores keys that it does not know."""

from collections.abc import Iterable
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.catalogue.data_file import read_data
from tilewright.catalogue.nearest import unknown_name
from tilewright.errors import UsageError

SHORT_DTYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "i32": "int32",
    "i64": "int64",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
}
TYPES: dict[str, type[Any]] = {"str": str, "bool": bool, "int": int, "yaml": dict}
EXAMPLES = {bool: "true", int: "2", list: "[float32]", dict: "{benchmark: no baseline exists}"}
STEPS = ("stub", "kernel", "registration", "tests", "benchmark", "verify")


@dataclass(frozen=True, kw_only=True)
class Question:
    """One recorded question of the template."""

    name: str
    type: type[Any]  # str, or what its YAML is: bool, int, list, dict
    choices: tuple[str, ...] = ()


def read_questions(template: Path) -> dict[str, Question]:
    """The questions that are recorded; those with `when: false` are computed."""
    config = read_data(template / "copier.yml")
    return {
        name: Question(
            name=name,
            type=list if details.get("multiselect") else TYPES[details["type"]],
            choices=tuple(_values(details.get("choices", ()))),
        )
        for name, details in config.items()
        if not name.startswith("_") and details.get("when") is not False
    }


def parse_data(pairs: Iterable[str], questions: Mapping[str, Question]) -> dict[str, Any]:
    """`KEY=VALUE` texts as answers of the type that each question has."""
    import yaml

    answers: dict[str, Any] = {}
    for key, text in parse_pairs(pairs, "--data").items():
        if key not in questions:
            raise unknown_name(f"{key!r} is not a question of the template", key, questions)
        wanted = questions[key].type
        if wanted is str:
            answers[key] = text
            continue
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise UsageError(f"--data {key}={text} is not YAML", hint="quote it, for example -d 'x=[a, b]'") from error
        if wanted is list and isinstance(value, str):
            value = value.split(",")
        if not isinstance(value, wanted) or (wanted is list and not all(isinstance(item, str) for item in value)):
            raise UsageError(
                f"--data {key}={text} is no answer to {key}", expected=f"expected for example {key}={EXAMPLES[wanted]}"
            )
        answers[key] = value
    return answers


def check_choices(answers: Mapping[str, Any], questions: Mapping[str, Question]) -> None:
    """Refuse what is not among the choices of a question, naming the nearest."""
    for key, value in answers.items():
        choices = questions[key].choices
        for item in value if isinstance(value, list) else [value]:
            if choices and str(item) not in choices:
                raise unknown_name(f"{item!r} is not a {key.removesuffix('s')}", str(item), choices)


def refuse_contradictions(answers: Mapping[str, Any], others: Mapping[str, Any], *, by: str) -> None:
    """Refuse two answers to one question; `by` is the option that gave some of them."""
    for key in answers.keys() & others.keys():
        if answers[key] != others[key]:
            raise UsageError(
                f"the {key} is {answers[key]} and, with {by}, {others[key]}",
                expected="expected one of them",
                hint="leave out the one that you do not mean",
            )


def refuse_unused(answers: Mapping[str, Any], used: Mapping[str, Any]) -> None:
    """Refuse an answer that is not among those `used`: one that changes nothing is a misunderstanding."""
    for key in answers:
        if key not in used:
            about = "layout" if key in ("package", "placement", "skip") else "family"
            raise UsageError(
                f"{key} does not apply to the {about} {used[about]}",
                expected="expected only options that change what is generated",
                hint=f"leave it out, or choose another {about}: tilewright list",
            )


def parse_dtypes(texts: str | list[str]) -> list[str]:
    """`f32,bf16` or `torch.float32,bfloat16` as the names that the template uses."""
    texts = texts.split(",") if isinstance(texts, str) else texts
    names = (text.strip().lower().removeprefix("torch.") for text in texts if text.strip())
    return list(dict.fromkeys(SHORT_DTYPES.get(name, name) for name in names))


def parse_pairs(pairs: Iterable[str], option: str) -> dict[str, str]:
    """`KEY=VALUE` texts as a mapping."""
    parsed: dict[str, str] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise UsageError(f"{option} {pair!r} has no `=`", expected=f"expected {option} KEY=VALUE")
        if parsed.setdefault(key.strip(), value.strip()) != value.strip():
            raise UsageError(f"{option} {key.strip()} is given twice", expected="expected one value for it")
    return parsed


def parse_skips(pairs: Iterable[str]) -> dict[str, str]:
    """`STEP=REASON` texts as a mapping of known steps to reasons."""
    skips = parse_pairs(pairs, "--skip")
    for step, reason in skips.items():
        if step not in STEPS:
            raise unknown_name(f"{step!r} is not a step", step, STEPS)
        if not reason:
            raise UsageError(
                f"--skip {step} has no reason",
                expected=f'expected --skip {step}="why it does not apply"',
                hint="the reason is recorded and shown wherever the step would be",
            )
    return skips


def _values(choices: Any) -> Iterable[str]:
    entries = choices.values() if isinstance(choices, dict) else choices
    return (str(entry["value"] if isinstance(entry, dict) else entry) for entry in entries)
