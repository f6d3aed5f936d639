r"""Vectors in registers for the compiled CPU kernels: numba has none of its own.

A `Span` says how many neighbouring channels are worked on at once; `load` gives them as one `Lanes` value, which the
compiler keeps in registers across a loop over edges (a row of the result is written once, not once an edge) and which
``+ - *`` act on. A span over the last, incomplete stretch of a row carries the number of channels left and touches no
memory behind them: its other lanes read as 0.

Memory is met through bare pointers, which numba neither counts references to nor checks indices of: counting
costs more than the work on a row of a few entries. Whoever calls keeps the arrays alive; the indices come from a checked
`Graph`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from omegagnn.ops.random import GOLDEN, MULTIPLIER_A, MULTIPLIER_B, UNIFORM_BITS

# A product and a sum may become one fused multiply-add; nothing else is loosened, since x + ω (h − x) for (1 − ω) x + ω h
# would make NaN of infinity. Only `total` adds in an order of its own.
CONTRACT = ("contract",)

# Bytes of a row summed in registers at once: AVX-512 has room for 1024, others for 256.
WIDEST = 1024 if binding.get_host_cpu_features().get("avx512f", False) else 256

_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
_Codegen = tuple[Any, Callable[..., Any]]


class Span(types.Type):
    """How many channels of a dtype are taken at once; `partial` where fewer than `count` may be left."""

    def __init__(self, dtype: Any, count: int, partial: bool) -> None:
        """Name the type by its parts, which makes equal spans one type."""
        self.dtype, self.count, self.partial = dtype, count, partial
        super().__init__(name=f"Span({dtype}, {count}, {partial})")


class Lanes(types.Type):
    """`count` numbers side by side in registers."""

    def __init__(self, dtype: Any, count: int) -> None:
        """Name the type by its parts, which makes equal vectors one type."""
        self.dtype, self.count = dtype, count
        super().__init__(name=f"Lanes({dtype}, {count})")


@register_model(Span)
class _SpanModel(models.PrimitiveModel):
    """The number of channels left, read by partial spans only."""

    def __init__(self, manager: Any, span: Span) -> None:
        super().__init__(manager, span, _INT64)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        element = manager.lookup(lanes.dtype).get_value_type()
        super().__init__(manager, lanes, ir.VectorType(element, lanes.count))


@intrinsic
def pointer(typing: Any, address: Any, like: Any) -> _Codegen:
    """Return the pointer to the numbers of the dtype of `like` at an address."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(sig.return_type))

    return types.CPointer(types.unliteral(like))(types.int64, like), generate


@intrinsic
def size_of(typing: Any, like: Any) -> _Codegen:
    """Return the bytes of a number, known to the compiler."""
    return types.int64(like), lambda context, builder, sig, args: _INT64(like.bitwidth // 8)


def _span_of(like: Any, size: Any, partial: bool) -> Span | None:
    if not isinstance(size, types.IntegerLiteral):
        return None
    return Span(like, size.literal_value * 8 // like.bitwidth, partial)


@intrinsic
def full_span(typing: Any, like: Any, size: Any) -> _Codegen | None:
    """Return the span of `size` bytes (a literal) of the dtype of a number."""
    span = _span_of(like, size, partial=False)
    return None if span is None else (span(like, size), lambda context, builder, sig, args: _INT64(0))


@intrinsic
def last_span(typing: Any, like: Any, size: Any, left: Any) -> _Codegen | None:
    """Return the span of `size` bytes (a literal) of which only the first `left` channels exist."""
    span = _span_of(like, size, partial=True)
    return None if span is None else (span(like, size, types.int64), lambda context, builder, sig, args: args[2])


@intrinsic
def length(typing: Any, span: Any) -> _Codegen:
    """Return the number of lanes of a span, known to the compiler."""
    return types.int64(span), lambda context, builder, sig, args: _INT64(span.count)


# ------------------------------------------------------------------------------------------------------ memory


def _vector_pointer(builder: Any, pointer: Any, index: Any, vector: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [index]), vector.as_pointer())


def _broadcast(builder: Any, scalar: Any, count: int) -> Any:
    vector = ir.VectorType(scalar.type, count)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, scalar, _INT32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_INT32, count), [0] * count))


def _counting(count: int) -> Any:
    return ir.Constant(ir.VectorType(_INT32, count), list(range(count)))


def _present(builder: Any, span: Span, left: Any) -> Any:
    """Return which lanes of a partial span exist."""
    return builder.icmp_signed("<", _counting(span.count), _broadcast(builder, builder.trunc(left, _INT32), span.count))


def _mangled(vector: Any) -> str:
    return f"v{vector.count}{'f32' if isinstance(vector.element, ir.FloatType) else 'f64'}"


def _call(builder: Any, name: str, result: Any, args: list[Any], flags: tuple[str, ...] = ()) -> Any:
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, [arg.type for arg in args]), name)
    return builder.call(function, args, fastmath=flags)


@intrinsic
def at(typing: Any, pointer: Any, index: Any) -> _Codegen:
    """Return the element at `index`; an integer comes out as int64."""
    result = types.int64 if isinstance(pointer.dtype, types.Integer) else pointer.dtype

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = builder.load(builder.gep(args[0], [args[1]]))
        return context.cast(builder, value, pointer.dtype, result)

    return result(pointer, types.int64), generate


@intrinsic
def put(typing: Any, pointer: Any, index: Any, value: Any) -> _Codegen:
    """Write a number, rounded to the dtype of the pointer, at `index`."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[2], builder.gep(args[0], [args[1]]))
        return context.get_dummy_value()

    return types.void(pointer, types.int64, pointer.dtype), generate


@intrinsic
def rounded(typing: Any, like: Any, value: Any) -> _Codegen:
    """Return a number in the dtype of another."""
    return like(like, like), lambda context, builder, sig, args: args[1]


@intrinsic
def load(typing: Any, pointer: Any, index: Any, span: Any) -> _Codegen:
    """Return the lanes of a span from `index` on."""
    lanes, size = Lanes(span.dtype, span.count), span.dtype.bitwidth // 8

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vector = context.get_value_type(lanes)
        place = _vector_pointer(builder, args[0], args[1], vector)
        if not span.partial:
            return builder.load(place, align=size)
        mask = _present(builder, span, args[2])
        # This spelling of the name is right for typed pointers and upgraded by LLVM to that for opaque ones.
        name = f"llvm.masked.load.{_mangled(vector)}.p0{_mangled(vector)}"
        return _call(builder, name, vector, [place, _INT32(size), mask, ir.Constant(vector, None)])

    return lanes(pointer, types.int64, span), generate


@intrinsic
def store(typing: Any, pointer: Any, index: Any, span: Any, value: Any) -> _Codegen:
    """Write lanes from `index` on, only those of the span that exist."""
    size = span.dtype.bitwidth // 8

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vector = args[3].type
        place = _vector_pointer(builder, args[0], args[1], vector)
        if span.partial:
            name = f"llvm.masked.store.{_mangled(vector)}.p0{_mangled(vector)}"
            mask = _present(builder, span, args[2])
            _call(builder, name, ir.VoidType(), [args[3], place, _INT32(size), mask])
        else:
            builder.store(args[3], place, align=size)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, span, value), generate


@intrinsic
def fetch(typing: Any, pointer: Any, index: Any, span: Any) -> _Codegen:
    """Ask for the cache lines of a span from `index` on, to be there when they are loaded."""
    line = 64 * 8 // span.dtype.bitwidth

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        for first in range(0, span.count, line):
            place = builder.gep(args[0], [builder.add(args[1], _INT64(first))])
            # For reading, into the second level of the cache, as data.
            arguments = [builder.bitcast(place, ir.IntType(8).as_pointer()), _INT32(0), _INT32(2), _INT32(1)]
            _call(builder, "llvm.prefetch.p0i8", ir.VoidType(), arguments)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, span), generate


@intrinsic
def wide(typing: Any, lanes: Any) -> _Codegen:
    """Return the lanes in float64, in which long sums are kept."""
    result = Lanes(types.float64, lanes.count)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return args[0] if result == lanes else builder.fpext(args[0], context.get_value_type(result))

    return result(lanes), generate


@intrinsic
def wide_span(typing: Any, span: Any) -> _Codegen:
    """Return the span of as many float64."""
    return Span(types.float64, span.count, span.partial)(span), lambda context, builder, sig, args: args[0]


@intrinsic
def one_by_one(typing: Any) -> _Codegen:
    """Keep the compiler from vectorising the loop around: for rows of a few entries its preparations cost more."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], side_effect=True)
        return context.get_dummy_value()

    return types.void(), generate


# -------------------------------------------------------------------------------------------------- arithmetic


def _define_operator(function: Callable[..., Any], instruction: str) -> None:
    @infer_global(function)
    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            return signature(args[0], *args) if isinstance(args[0], Lanes) and args[0] == args[1] else None

    @lower_builtin(function, Lanes, Lanes)
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args, flags=CONTRACT)


_define_operator(operator.add, "fadd")
_define_operator(operator.sub, "fsub")
_define_operator(operator.mul, "fmul")
_define_operator(operator.truediv, "fdiv")


@intrinsic
def every(typing: Any, span: Any, scalar: Any) -> _Codegen:
    """Return one number in all lanes of a span."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _broadcast(builder, args[1], span.count)

    return Lanes(span.dtype, span.count)(span, span.dtype), generate


@intrinsic
def total(typing: Any, span: Any, lanes: Any) -> _Codegen:
    """Return the sum over the lanes of a span that exist."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, value = args
        name = f"llvm.vector.reduce.fadd.{_mangled(value.type)}"
        if span.partial:
            value = builder.select(_present(builder, span, left), value, ir.Constant(value.type, None))
        zero = ir.Constant(value.type.element, -0.0)
        return _call(builder, name, zero.type, [zero, value], ("reassoc",))

    return lanes.dtype(span, lanes), generate


@intrinsic
def where_positive(typing: Any, lanes: Any, one: Any, other: Any) -> _Codegen:
    """Return the lanes of `one` where the first are above 0, else (NaN too) those of `other`."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        zero = ir.Constant(args[0].type, None)
        return builder.select(builder.fcmp_ordered(">", args[0], zero), args[1], args[2])

    return lanes(lanes, lanes, lanes), generate


@intrinsic
def activated(typing: Any, relu: Any, lanes: Any) -> _Codegen:
    """Return max(x, 0) of each lane (NaN stays NaN), or the lanes as they are where `relu` is None."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if isinstance(relu, types.NoneType):
            return args[1]
        zero = ir.Constant(args[1].type, None)
        return builder.select(builder.fcmp_ordered("<", args[1], zero), zero, args[1])

    return lanes(relu, lanes), generate


@intrinsic
def let_through(typing: Any, relu: Any, lanes: Any, grad: Any) -> _Codegen:
    """Return a gradient where the lanes are above 0, else 0, or everywhere where `relu` is None."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if isinstance(relu, types.NoneType):
            return args[2]
        zero = ir.Constant(args[1].type, None)
        return builder.select(builder.fcmp_ordered(">", args[1], zero), args[2], zero)

    return lanes(relu, lanes, lanes), generate


@intrinsic
def square_root(typing: Any, lanes: Any) -> _Codegen:
    """Return the square root of each lane."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _call(builder, f"llvm.sqrt.{_mangled(args[0].type)}", args[0].type, [args[0]])

    return lanes(lanes), generate


@intrinsic
def exponential(typing: Any, lanes: Any) -> _Codegen:
    r"""Return :math:`e^x = 2^k e^r` with :math:`k = \mathrm{round}(x / \ln 2)` and a Taylor sum in ``r``.

    |r| ≤ ln 2 / 2, so terms to degree 7 (float32) or 13 (float64) are exact to rounding. What would be subnormal is 0.
    """
    single = lanes.dtype == types.float32
    bits, digits, degree = (_INT32, 23, 7) if single else (_INT64, 52, 13)
    bias = 127 if single else 1023
    # ln 2 in two parts of which the first, times any k, is exact.
    ln2_high = 0.693359375 if single else 0.6931471803691238
    ln2_low = math.log(2) - ln2_high if single else 1.9082149292705877e-10

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        (x,) = args
        vector, words = x.type, ir.VectorType(bits, lanes.count)

        def constant(value: float) -> Any:
            return ir.Constant(vector, [value] * lanes.count)

        def word(value: int) -> Any:
            return ir.Constant(words, [value] * lanes.count)

        scaled = builder.fmul(x, constant(1 / math.log(2)))
        rounded = _call(builder, f"llvm.rint.{_mangled(vector)}", vector, [scaled])
        too_low = builder.fcmp_ordered("<", rounded, constant(1 - bias))
        too_high = builder.fcmp_ordered(">", rounded, constant(bias))
        usable = builder.and_(
            builder.fcmp_ordered(">=", rounded, constant(1 - bias)), builder.fcmp_ordered("<=", rounded, constant(bias))
        )
        k = builder.select(usable, rounded, constant(0.0))  # NaN and infinity have no place in an integer
        r = builder.fsub(x, builder.fmul(k, constant(ln2_high), flags=CONTRACT), flags=CONTRACT)
        r = builder.fsub(r, builder.fmul(k, constant(ln2_low), flags=CONTRACT), flags=CONTRACT)
        series = constant(1 / math.factorial(degree))
        for power in range(degree - 1, -1, -1):
            term = constant(1 / math.factorial(power))
            series = builder.fadd(builder.fmul(series, r, flags=CONTRACT), term, flags=CONTRACT)
        exponent = builder.shl(builder.add(builder.fptosi(k, words), word(bias)), word(digits))
        result = builder.fmul(series, builder.bitcast(exponent, vector))
        result = builder.select(too_low, constant(0.0), result)
        return builder.select(too_high, constant(math.inf), result)

    return lanes(lanes), generate


@intrinsic
def drawn(
    typing: Any, span: Any, key0: Any, key1: Any, element: Any, stride: Any, threshold: Any, scale: Any
) -> _Codegen:
    """Return `scale` where the 24 bits of `omegagnn.ops.random.draw_bits` reach `threshold`, else 0.

    For `element` and every `stride`-th after it. The vectors hold plain 32-bit words, which count modulo 2^32 by
    themselves.
    """
    lanes = Lanes(span.dtype, span.count)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _, key0, key1, element, stride, threshold, scale = args
        words = ir.VectorType(_INT32, span.count)

        def word(value: Any) -> Any:
            return _broadcast(builder, builder.trunc(value, _INT32), span.count)

        def constant(value: int) -> Any:
            return ir.Constant(words, [value] * span.count)

        def folded(value: Any, shift: int) -> Any:
            return builder.xor(value, builder.lshr(value, constant(shift)))

        start = word(element)
        low = builder.add(start, builder.mul(word(stride), _counting(span.count)))
        carry = builder.zext(builder.icmp_unsigned("<", low, start), words)
        high = builder.add(word(builder.lshr(element, _INT64(32))), carry)
        value = folded(builder.xor(low, word(key0)), 16)
        value = folded(builder.mul(value, constant(MULTIPLIER_A)), 15)
        value = builder.add(builder.add(value, word(key1)), builder.mul(high, constant(GOLDEN)))
        value = folded(builder.mul(value, constant(MULTIPLIER_B)), 16)
        value = builder.lshr(value, constant(32 - UNIFORM_BITS))
        kept = builder.icmp_unsigned(">=", value, word(threshold))
        return builder.select(
            kept, _broadcast(builder, scale, span.count), ir.Constant(context.get_value_type(lanes), None)
        )

    signature = lanes(span, *(types.int64,) * 5, span.dtype)
    return signature, generate
