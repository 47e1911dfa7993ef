"""Driver, toolkit and packages."""

from tilewright.explain.entry import Cause
from tilewright.explain.entry import Entry

_INSTALL = """
pip install 'cuda-tile[tileiras]>=1.5,<1.8'
"""

DRIVER = (
    Entry(
        name="no-driver",
        title="No NVIDIA driver, or no GPU",
        pattern=r"libcuda\.so\.1: cannot open shared object file|nvcuda\.dll|Found no NVIDIA driver"
        r"|no CUDA-capable device|No CUDA GPUs are available|CUDA_ERROR_NO_DEVICE",
        causes=(
            Cause(
                what="The machine has no GPU",
                tell="`nvidia-smi` is not there: run the tests on the CPU, with pytest --tile-device=interpret",
            ),
            Cause(
                what="The container was started without the GPU",
                tell="`nvidia-smi` works outside: docker run --gpus all",
            ),
            Cause(what="The GPU is hidden", tell="`echo $CUDA_VISIBLE_DEVICES` is empty or names another"),
        ),
        wrong="""
        pytest tests/ops
        """,
        right="""
        pytest --tile-device=interpret tests/ops
        """,
        samples=(
            "OSError: libcuda.so.1: cannot open shared object file: No such file or directory",
            "RuntimeError: Found no NVIDIA driver on your system.",
            "RuntimeError: No CUDA GPUs are available",
        ),
    ),
    Entry(
        name="torch-without-cuda",
        title="PyTorch was installed without CUDA",
        pattern=r"Torch not compiled with CUDA enabled",
        causes=(
            Cause(
                what="The package for CPUs is installed", tell="`python -c 'import torch; print(torch.version.cuda)'`"
            ),
            Cause(
                what="There is no GPU, and the tests should run on the CPU",
                tell="`nvidia-smi` is not there: pytest --tile-device=interpret",
            ),
        ),
        wrong="""
        pip install torch --index-url https://download.pytorch.org/whl/cpu
        """,
        right="""
        pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu130
        """,
        samples=("AssertionError: Torch not compiled with CUDA enabled",),
    ),
    Entry(
        name="driver-too-old",
        title="The driver is older than what it should run",
        pattern=r"Minimum driver version required is|driver version is insufficient|driver on your system is too old"
        r"|CUDA_ERROR_JIT_COMPILER_NOT_FOUND|CUDA_ERROR_UNSUPPORTED_PTX_VERSION|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        causes=(
            Cause(
                what="The driver is for a CUDA version below 13.0",
                tell="`tilewright doctor` says of the driver: unfit",
            ),
            Cause(
                what="The container has libraries of another driver than the machine",
                tell="`nvidia-smi` shows different versions inside and outside",
            ),
            Cause(
                what="The driver was installed in parts: libnvidia-tileiras is missing",
                tell="the error is JIT_COMPILER_NOT_FOUND, and `ldconfig -p | grep tileiras` prints nothing",
            ),
        ),
        wrong="""
        nvidia-smi   # CUDA Version: 12.4
        """,
        right="""
        nvidia-smi   # CUDA Version: 13.0 or newer, from https://www.nvidia.com/drivers
        """,
        samples=(
            "Minimum driver version required is 13.0, got 12.4",
            "CUDA driver version is insufficient for CUDA runtime version",
            "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
        ),
    ),
    Entry(
        name="architecture-not-supported",
        title="The GPU is none that the compiler knows",
        pattern=r"GPU architecture sm_\w+ is not supported|no kernel image is available"
        r"|CUDA_ERROR_NO_BINARY_FOR_GPU|[Uu]nsupported (gpu|GPU|arch)\w*:? *['\"]?sm_",
        causes=(
            Cause(
                what="The GPU is older than sm_80: cuTile does not run on it",
                tell="`tilewright doctor` says of the gpu: unfit",
            ),
            Cause(
                what="The toolkit is older than the GPU: sm_80 needs 13.2, sm_90 needs 13.3",
                tell="`tilewright doctor` shows the version of tileiras",
            ),
            Cause(what="A name with a letter, as sm_121a, was given", tell="give the plain one, sm_121"),
        ),
        wrong="""
        tilewright compile my_op --arch sm_75
        """,
        right="""
        tilewright compile my_op --arch sm_90
        """,
        samples=(
            "GPU architecture sm_75 is not supported by this version of tileiras.",
            "CUDA error: no kernel image is available for execution on the device",
        ),
    ),
    Entry(
        name="bytecode-version",
        title="cuda-tile and its compiler are of different releases",
        pattern=r"unsupported Tile( IR bytecode)? version|requires bytecode version \d|requires tileiras \S+ or later"
        r"|bytecode generation requires version",
        causes=(
            Cause(
                what="A toolkit of the system is used, and it is older than cuda-tile",
                tell="`tilewright doctor` shows a path outside of the environment for tileiras",
            ),
            Cause(
                what="The operation came with a newer toolkit",
                tell="other kernels compile, and the message names a version",
            ),
        ),
        wrong="""
        pip install cuda-tile
        """,
        right=_INSTALL,
        samples=(
            "unsupported Tile IR bytecode version: 13.4",
            "num_worker_warps=8 requires tileiras 13.5 or later. Current version is 13.4.",
        ),
    ),
    Entry(
        name="no-compiler",
        title="The compiler tileiras is not found",
        pattern=r"'tileiras' compiler not found|tileiras is not installed",
        causes=(
            Cause(what="cuda-tile was installed without it", tell="`pip list` has no nvidia-cuda-tileiras"),
            Cause(
                what="Its packages are of different releases",
                tell="`tilewright doctor` says: not one release",
            ),
        ),
        wrong="""
        pip install cuda-tile
        """,
        right=_INSTALL,
        samples=("'tileiras' compiler not found, make sure it is available as a python package",),
    ),
    Entry(
        name="no-cuda-tile",
        title="cuda-tile, PyTorch or Triton is not installed",
        pattern=r"No module named '(cuda|cuda\.tile|torch|triton)'|(torch|cuda-tile|cuda\.tile) is not installed",
        causes=(
            Cause(what="Another environment is active", tell="`which python` is not that of the environment"),
            Cause(what="It was not installed", tell="`tilewright doctor` names what is missing and how to get it"),
        ),
        wrong="""
        pip install tilewright
        """,
        right="""
        pip install 'tilewright[kernels]'
        """,
        rules=("TW116",),
        samples=("ModuleNotFoundError: No module named 'cuda.tile'", "error: cuda-tile is not installed"),
    ),
    Entry(
        name="out-of-memory",
        title="The GPU has not enough memory",
        pattern=r"CUDA out of memory|OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY",
        causes=(
            Cause(what="A test has a tensor that is too large", tell="the test is marked large, or its bytes exceed"),
            Cause(what="Another process uses the GPU", tell="`nvidia-smi` lists it"),
            Cause(
                what="The reference in fp64 or its gradients take several times as much as the operator",
                tell="the traceback ends in `reference`: compare by parts",
            ),
        ),
        wrong="""
        x = torch.randn(65536, 65536, device="cuda")
        """,
        right="""
        if torch.cuda.mem_get_info()[0] < 3 * 2**30:
            pytest.skip("needs 3 GiB of free GPU memory")
        x = torch.randn(16384, 16384, device="cuda")
        """,
        rules=("TW413",),
        samples=("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 16.00 GiB.",),
    ),
)
