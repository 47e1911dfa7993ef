"""Read registers, spills, shared memory and code size of each kernel in a cubin, and its code."""

import struct

from tilewright.model.kernel import Resources

_ATTRIBUTE_REGISTERS = 0x2F
_ATTRIBUTE_FRAME_SIZE = 0x11
_EXECUTED = (".text.", ".nv.constant", ".nv.info.")
_SIZED_VALUE = 4  # format of an attribute that carries its own length
_MALFORMED = (struct.error, IndexError, OverflowError, UnicodeDecodeError)  # what reading damaged bytes raises


class CubinError(ValueError):
    """The bytes are not a cubin, or it ends early."""


def read_resources(cubin: bytes) -> dict[str, Resources]:
    """Resources of every kernel, by the name of its symbol."""
    try:
        return _read(memoryview(cubin))
    except _MALFORMED as error:
        raise CubinError(f"malformed cubin: {error}") from error


def read_code(cubin: bytes) -> bytes:
    """Instructions, constants and launch attributes: all that a kernel does, and nothing of where its source stands."""
    elf = memoryview(cubin)
    try:
        return b"".join(_bytes(elf, section) for name, section in _sections(elf).items() if name.startswith(_EXECUTED))
    except _MALFORMED as error:
        raise CubinError(f"malformed cubin: {error}") from error


def _read(elf: memoryview) -> dict[str, Resources]:
    sections = _sections(elf)
    code = {name.removeprefix(".text."): size for name, (_, size) in sections.items() if name.startswith(".text.")}
    values: dict[tuple[str, int], int] = {}
    if ".nv.info" in sections:
        names = _symbol_names(elf, sections)
        for attribute, value in _attributes(_bytes(elf, sections[".nv.info"])):
            if attribute in (_ATTRIBUTE_REGISTERS, _ATTRIBUTE_FRAME_SIZE):
                symbol, number = struct.unpack_from("<II", value)
                values[names[symbol], attribute] = number
    return {
        name: Resources(
            registers=values.get((name, _ATTRIBUTE_REGISTERS), 0),
            spilled_bytes=values.get((name, _ATTRIBUTE_FRAME_SIZE), 0),
            shared_bytes=sections.get(f".nv.shared.{name}", (0, 0))[1],
            code_bytes=size,
        )
        for name, size in code.items()
    }


def _sections(elf: memoryview) -> dict[str, tuple[int, int]]:
    """Offset and size of each section, by name."""
    if bytes(elf[:5]) != b"\x7fELF\x02":
        raise CubinError("not a cubin: no 64-bit ELF header")
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry_size, count, names_index = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * entry_size) for i in range(count)]
    names = _bytes(elf, headers[names_index][4:6])
    return {_string(names, header[0]): header[4:6] for header in headers}


def _bytes(elf: memoryview, section: tuple[int, int]) -> bytes:
    offset, size = section
    if offset + size > len(elf):
        raise CubinError(f"a section ends at byte {offset + size}, the file at {len(elf)}")
    return bytes(elf[offset : offset + size])


def _string(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    if not 0 <= offset <= end:
        raise CubinError("a name lies outside its string table")
    return table[offset:end].decode()


def _symbol_names(elf: memoryview, sections: dict[str, tuple[int, int]]) -> list[str]:
    symbols = _bytes(elf, sections.get(".symtab", (0, 0)))
    strings = _bytes(elf, sections.get(".strtab", (0, 0)))
    return [_string(strings, entry[0]) for entry in struct.iter_unpack("<IBBHQQ", symbols)]


def _attributes(info: bytes) -> list[tuple[int, bytes]]:
    """Attributes of a `.nv.info` section that carry a sized value."""
    found = []
    offset = 0
    while offset + 4 <= len(info):
        kind, attribute, size = struct.unpack_from("<BBH", info, offset)
        offset += 4
        if kind == _SIZED_VALUE:
            found.append((attribute, info[offset : offset + size]))
            offset += size
    return found
