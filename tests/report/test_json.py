import json
from pathlib import Path

import jsonschema
import pytest

from tests.support import results
from tilewright.report import json as documents

SCHEMAS = Path(documents.__file__).with_name("schemas")
DOCUMENTS = {
    "verify": documents.verify(results.HOST, {"gelu": results.STEPS}),
    "compile": documents.compilation(results.HOST, results.COMPILATION),
    "status": documents.status(results.HOST, results.STATUS, "0.1.0", results.STANDING),
    "bench": documents.bench(results.HOST, results.SURROUNDINGS, results.BENCHMARKS),
    "doctor": documents.doctor(results.FINDINGS),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_is_what_its_schema_says(name):
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(json.dumps(DOCUMENTS[name])), schema)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_schema_knows_no_other_keys(name):
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    with pytest.raises(jsonschema.ValidationError, match="Additional properties"):
        jsonschema.validate({**DOCUMENTS[name], "more": 1}, schema)


def test_verdicts_are_counted():
    assert DOCUMENTS["verify"]["counts"] == {"ok": 2, "failed": 1, "skipped": 2, "n/a": 1}


def test_measurements_are_fractions_of_the_limit_and_of_the_fastest_peer():
    (problem,) = DOCUMENTS["bench"]["operators"][0]["problems"]
    own, torch, liger = problem["measurements"]
    assert (own["rate"]["median"], own["of_limit"], own["of_best_peer"]) == pytest.approx((2000, 0.5, 2.0))
    assert (torch["of_limit"], torch["of_best_peer"]) == pytest.approx((0.25, 1.0))
    assert (liger["rate"], liger["of_limit"], liger["of_best_peer"]) == (None, None, None)
