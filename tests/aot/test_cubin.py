import io
import struct
from contextlib import suppress

import pytest
from hypothesis import example
from hypothesis import given
from hypothesis import strategies as st

from tilewright.aot.cubin import CubinError
from tilewright.aot.cubin import read_code
from tilewright.aot.cubin import read_resources
from tilewright.model.kernel import Resources


def elf(sections: dict[str, tuple[bytes, int]]) -> bytes:
    """A 64-bit ELF file with these sections: contents, and size where it differs (shared memory has no contents)."""
    sections = {"": (b"", 0), ".shstrtab": (b"", 0), **sections}
    names = b"\0".join(name.encode() for name in sections) + b"\0"
    sections[".shstrtab"] = (names, len(names))
    body = b""
    headers = b""
    for name, (contents, size) in sections.items():
        name_offset = names.index(name.encode() + b"\0")
        headers += struct.pack("<IIQQQQIIQQ", name_offset, 0, 0, 0, 64 + len(body), size, 0, 0, 0, 0)
        body += contents
    header = b"\x7fELF\x02" + bytes(35) + struct.pack("<Q", 64 + len(body)) + bytes(10)
    header += struct.pack("<HHH", 64, len(sections), 1)
    assert len(header) == 64
    return header + body + headers


def info(*attributes: tuple[int, bytes]) -> bytes:
    return b"".join(struct.pack("<BBH", 4, kind, len(value)) + value for kind, value in attributes)


def sized(contents: bytes) -> tuple[bytes, int]:
    return contents, len(contents)


SYMBOLS = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0) + struct.pack("<IBBHQQ", 1, 0, 0, 0, 0, 0)
KERNEL = elf(
    {
        ".strtab": sized(b"\0relu\0"),
        ".symtab": sized(SYMBOLS),
        ".nv.info": sized(
            info((0x2F, struct.pack("<II", 1, 42)), (0x12, struct.pack("<II", 1, 7)), (0x11, struct.pack("<II", 1, 96)))
        ),
        ".text.relu": sized(bytes(640)),
        ".nv.shared.relu": (b"", 2048),
    }
)


def test_numbers_are_read_from_the_elf_file():
    expected = Resources(registers=42, spilled_bytes=96, shared_bytes=2048, code_bytes=640)
    assert read_resources(KERNEL) == {"relu": expected}


def test_kernel_without_attributes_or_shared_memory_has_zeros():
    assert read_resources(elf({".text.k": sized(bytes(16))}))["k"] == Resources(
        registers=0, spilled_bytes=0, shared_bytes=0, code_bytes=16
    )


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"MZ" + bytes(100), b"\x7fELF\x01" + bytes(100)])
def test_other_files_are_refused(data):
    with pytest.raises(CubinError):
        read_resources(data)


def test_truncated_file_is_refused():
    with pytest.raises(CubinError):
        read_resources(KERNEL[:-1])


@given(st.integers(0, len(KERNEL) - 1), st.integers(0, 255))
@example(0x28 + 7, 128)  # an offset beyond what Python takes for one
def test_a_damaged_byte_never_reads_outside_the_file(position, value):
    damaged = bytearray(KERNEL)
    damaged[position] = value
    with suppress(CubinError):
        read_resources(bytes(damaged))


def test_compiled_kernel_that_is_too_big_spills():
    ct = pytest.importorskip("cuda.tile")
    from cuda.tile.compilation import CallingConvention
    from cuda.tile.compilation import KernelSignature
    from cuda.tile.compilation import export_kernel

    def compiled(kernel):
        cubin = io.BytesIO()
        signature = KernelSignature([], CallingConvention.cutile_python_v2(), "kernel")
        export_kernel(kernel, [signature], cubin, gpu_code="sm_80", output_format="cubin")
        return read_resources(cubin.getvalue())["kernel"]

    @ct.kernel
    def small():
        ct.printf("%f", ct.sum(ct.arange(128, dtype=ct.float32)))

    @ct.kernel
    def big():
        t = ct.astype(ct.arange(2**18, dtype=ct.int32), ct.float32)
        ct.printf("%f %f", ct.sum(t / ct.sum(t)), ct.max(t))

    assert compiled(small).code_bytes < compiled(big).code_bytes
    assert compiled(big).spilled_bytes > 0
    assert compiled(small).registers in range(1, 256)


def test_code_is_what_is_executed():
    sections = {".text.k": sized(b"mul"), ".nv.info.k": sized(b"cta"), ".nv.constant0.k": sized(b"42")}
    code = read_code(elf(sections))
    assert code == b"mulcta42"
    assert read_code(elf({**sections, ".debug_line": sized(b"line 7")})) == code
    assert read_code(elf({**sections, ".text.k": sized(b"add")})) != code


def test_code_of_no_cubin():
    with pytest.raises(CubinError, match="not a cubin"):
        read_code(b"nothing")
