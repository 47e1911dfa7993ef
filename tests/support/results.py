"""Results of commands, with one of everything that can happen."""

from pathlib import Path

from tilewright.model.host import Host
from tilewright.model.kernel import CaptureFailure
from tilewright.model.kernel import Compilation
from tilewright.model.kernel import CompiledKernel
from tilewright.model.kernel import Resources
from tilewright.model.measurement import Comparison
from tilewright.model.measurement import Limits
from tilewright.model.measurement import Measurement
from tilewright.model.measurement import OperatorBenchmark
from tilewright.model.measurement import Problem
from tilewright.model.measurement import Spread
from tilewright.model.measurement import Surroundings
from tilewright.model.outcome import StepOutcome
from tilewright.model.outcome import Verdict
from tilewright.update.behind import Behind
from tilewright.update.behind import Standing
from tilewright.update.changelog import Release
from tilewright.verify.doctor import Finding
from tilewright.verify.doctor import State
from tilewright.verify.status import OperatorStatus

HOST = Host(root=Path("/my/host"), layout="standalone", package="my_ops")

COMPILATION = Compilation(
    op="gelu",
    kernels=(
        CompiledKernel(
            kernel="_gelu_kernel",
            arch="sm_90",
            dtype="float16",
            signature="aligned",
            symbol="_gelu_kernel_Kt2",
            hints="occupancy=4",
            seconds=0.25,
            resources=Resources(registers=42, spilled_bytes=96, shared_bytes=2048, code_bytes=640),
        ),
        CompiledKernel(
            kernel="_gelu_kernel",
            arch="sm_90",
            dtype="float16",
            signature="unaligned",
            symbol="_gelu_kernel_Kt2_p1",
            error="the compiler was ended by SIGSEGV",
        ),
    ),
    failures=(CaptureFailure(arch="sm_80", dtype="float32", error="ValueError: no"),),
    unreached=("_gelu_long_kernel",),
    seconds=1.5,
)

BENCHMARKS = (
    OperatorBenchmark(
        name="gelu",
        limits=Limits(copy=4000.0, matrix={"float16": 700.0}),
        comparisons=(
            Comparison(
                problem=Problem(size={"M": 1024, "N": 1000}, dtype="float16", unit="GB/s", work=4096000),
                limit=4000.0,
                measurements=(
                    # 4096000 bytes in 0.002048 ms are 2000 GB/s
                    Measurement(
                        contestant="cutile",
                        verdict="ok",
                        milliseconds=Spread(median=0.002048, low=0.002, high=0.0021),
                    ),
                    Measurement(
                        contestant="torch", verdict="ok", milliseconds=Spread(median=0.004096, low=0.004, high=0.0042)
                    ),
                    Measurement(contestant="liger", verdict="missing", error="ImportError: no liger"),
                ),
            ),
        ),
    ),
    OperatorBenchmark(name="by_hand", error="bench_by_hand.py has no SIZES"),
)

SURROUNDINGS = Surroundings(
    date="2026-11-30T04:00:00+00:00",
    command="tilewright bench gelu",
    gpu="A GPU",
    arch="sm_90",
    driver="580.0",
    versions={"torch": "2.11.0", "liger-kernel": ""},
)

STEPS = (
    StepOutcome(step="stub", verdict=Verdict.OK),
    StepOutcome(step="kernel", verdict=Verdict.FAILED, detail="a: mend it", data={"problems": ["a: mend it", "b"]}),
    StepOutcome(step="registration", verdict=Verdict.OK, detail="cutile", data={"backends": ["cutile"]}, seconds=1.5),
    StepOutcome(step="tests", verdict=Verdict.SKIPPED, detail="no GPU", data={"missing": "gpu"}),
    StepOutcome(step="benchmark", verdict=Verdict.NOT_APPLICABLE, detail="no baseline exists"),
    StepOutcome(step="verify", verdict=Verdict.SKIPPED, detail="no compiler"),
)

STATUS = (
    OperatorStatus(name="gelu", template_version="0.0.9", steps=STEPS),
    OperatorStatus(name="by_hand", template_version="", steps=STEPS),
)

STANDING = Standing(
    behind=(Behind(name="gelu", version="v0.0.9", releases=(Release(version="0.1.0", entries=("Faster kernels.",)),)),),
    detached={"gelu": ("tests",)},
)

FINDINGS = (
    Finding(name="git", state=State.PRESENT, version="2.39.5", detail="/usr/bin/git", needed_for="update"),
    Finding(name="torch", state=State.MISSING, mend="pip install torch", needed_for="compile"),
)
