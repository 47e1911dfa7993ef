"""Dtypes of tiles by name, and what cuTile promotes them to; that of an array X is "X.dtype", whatever it is."""

HALF = frozenset({"float16", "bfloat16"})
FLOATS = frozenset({"float16", "bfloat16", "float32", "float64", "tfloat32", "float"})
INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int"})
_WIDTHS = ("float16", "bfloat16", "tfloat32", "float32", "float64")


def is_float(dtype: str | None) -> bool:
    """Whether it is known to be floating-point."""
    return dtype in FLOATS


def is_integer(dtype: str | None) -> bool:
    """Whether it is known to be an integer."""
    return dtype in INTEGERS


def of_array(dtype: str | None) -> str | None:
    """The array of which this is the dtype."""
    return dtype.removesuffix(".dtype") if dtype and dtype.endswith(".dtype") else None


def promoted(first: str | None, second: str | None) -> str | None:
    """The dtype of a sum of two; "int" and "float" are Python numbers, which take the dtype of the other."""
    if first == second or first is None or second is None:
        return first if first == second else None
    for weak, other in ((first, second), (second, first)):
        if weak == "int":
            return other
        if weak == "float":
            return "float32" if is_integer(other) or other == "bool" else other
        if weak == "bool":
            return other
        if is_integer(weak) and (is_float(other) or of_array(other)):
            return other
    if of_array(first) or of_array(second):
        wide = first if of_array(second) else second
        return wide if wide in ("float32", "float64") else None
    if is_integer(first) and is_integer(second):
        return max(first, second, key=lambda name: (int("".join(filter(str.isdigit, name)) or 32), name))
    if {first, second} == HALF:
        return None
    return max(first, second, key=_WIDTHS.index)
