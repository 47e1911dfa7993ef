"""The functions of `cuda.tile` that kernels call, with their parameters, as of 1.7."""

from dataclasses import dataclass

# After the names the parameters in order: "/x" by position only, "?" with a default, after "*" by keyword only.
_TABLE = """
abs bitwise_not ceil cos cosh floor isnan log log2 negative pack_to_bytes sin sinh tan: /x
add mul sub truediv: /x /y * rounding_mode? flush_to_zero?
arange: /size * dtype start? step?
argmax argmin: /x axis? * keepdims? propagate_nan?
assert_: /cond message?
assume_divisible_by: x divisor
astile: /value * dtype
astype: /x /dtype * rounding_mode?
atan2: /x1 /x2
atomic_add atomic_and atomic_max: /array /indices /update * check_bounds? memory_order? memory_scope?
atomic_min atomic_or atomic_xchg atomic_xor: /array /indices /update * check_bounds? memory_order? memory_scope?
atomic_cas: /array /indices /expected /desired * check_bounds? memory_order? memory_scope?
bid num_blocks: axis
bitcast unpack_from_bytes: /x dtype
bitwise_and bitwise_lshift bitwise_or bitwise_rshift bitwise_xor cdiv divmod equal floordiv: /x /y
greater greater_equal less less_equal matmul mod not_equal pow: /x /y
broadcast_to reshape: /x shape
cat: /tiles axis
cumprod cumsum: /x axis? * reverse? rounding_mode? flush_to_zero?
ensure_constant: /value
exp tanh: /x * rounding_mode?
exp2 rsqrt: /x * flush_to_zero?
expand_dims: /x axis
extract: /x index shape
full: shape fill_value dtype
gather: /array /indices * mask? padding_value? check_bounds? latency?
grid_dependency_control_launch_dependents grid_dependency_control_wait:
insert: /x index value
load: /array index shape * order? padding_mode? check_bounds? latency? allow_tma? memory_order? memory_scope?
load_advanced_indexing: /array /indices * padding_mode? latency? allow_tma?
max min: /x axis? * keepdims? flush_to_zero? propagate_nan?
maximum minimum: /x /y * flush_to_zero? propagate_nan?
mma: /x /y acc * use_fast_acc?
mma_scaled: /x /x_scale /y /y_scale acc
num_tiles: /array axis shape order?
ones zeros: shape dtype
permute: /x axes
print: ... * sep? end?
printf: format ...
prod sum: /x axis? * keepdims? rounding_mode? flush_to_zero?
reduce: /x axis func identity * keepdims?
scan: /x axis func identity * reverse?
scatter: /array /indices /value * mask? check_bounds? latency?
sqrt: /x * rounding_mode? flush_to_zero?
static_assert: /condition /message?
static_eval: /expr
static_exception: /exc
static_iter: iterable
store: /array index tile * order? check_bounds? latency? allow_tma? memory_order? memory_scope?
store_advanced_indexing: /array /indices /tile * latency? allow_tma?
transpose: /x axis0? axis1?
where: /cond /x /y
"""

_DTYPES = """
bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 tfloat32
float8_e4m3fn float8_e5m2 float8_e5m3fnu float8_e8m0fnu float4_e2m1fn
"""
# Everything else that the module gives: types, annotations, errors, and what the host calls.
_OTHER = """
Array ArrayAnnotation ByTarget Constant ConstantAnnotation DType IndexedWithInt64 ListAnnotation MemoryOrder MemoryScope
PaddingMode RoundingMode Scalar ScalarInt64 Slice StaticException Tile TileCompilerExecutionError
TileCompilerTimeoutError TileError TileInternalError TileRecursionError TileStaticAssertionError TileStaticEvalError
TileSyntaxError TileTypeError TileUnsupportedFeatureError TileValueError TiledView compilation compiler_timeout
foreign_pointer_dtype function kernel launch tune
"""
DTYPES = frozenset(_DTYPES.split())
OTHER_NAMES = frozenset(_OTHER.split())
TILE_METHODS = frozenset({"astype", "extract", "insert", "item", "permute", "reshape", "transpose"})
TILE_PROPERTIES = frozenset({"dtype", "ndim", "shape"})


@dataclass(frozen=True)
class Signature:
    """The parameters of one function."""

    positional: tuple[str, ...]  # in order; also by keyword, except for those in `by_position`
    keyword: tuple[str, ...]
    required: frozenset[str]
    by_position: frozenset[str]
    variadic: bool

    @property
    def names(self) -> tuple[str, ...]:
        """All parameters."""
        return (*self.positional, *self.keyword)


def _signature(text: str) -> Signature:
    words = text.split()
    first = words[: words.index("*")] if "*" in words else words
    last = words[words.index("*") + 1 :] if "*" in words else []
    variadic = "..." in first
    first = [word for word in first if word != "..."]
    return Signature(
        positional=tuple(word.strip("/?") for word in first),
        keyword=tuple(word.strip("?") for word in last),
        required=frozenset(word.strip("/") for word in (*first, *last) if not word.endswith("?")),
        by_position=frozenset(word.strip("/?") for word in first if word.startswith("/")),
        variadic=variadic,
    )


def _functions() -> dict[str, Signature]:
    found: dict[str, Signature] = {}
    for line in _TABLE.strip().splitlines():
        names, _, parameters = line.partition(":")
        found |= dict.fromkeys(names.split(), _signature(parameters))
    return found


FUNCTIONS = _functions()
