"""Polynomials agree with the integers that they stand for."""

from hypothesis import given
from hypothesis import strategies as st

from tilewright.rules.symbols import Polynomial
from tilewright.rules.symbols import floor_divided
from tilewright.rules.symbols import integer
from tilewright.rules.symbols import remainder
from tilewright.rules.symbols import rounded_up
from tilewright.rules.symbols import unknown

A, B, N = unknown("parameter", "a"), unknown("parameter", "b"), unknown("dimension", "X", 0)
VALUES = {"a": 5, "b": 16}


def polynomials() -> st.SearchStrategy[Polynomial]:
    leaves = st.one_of(st.integers(-9, 9).map(integer), st.sampled_from([A, B]))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
            st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
            st.tuples(inner, inner).map(lambda pair: pair[0] - pair[1]),
        ),
        max_leaves=6,
    )


def value(polynomial: Polynomial) -> int:
    total = 0
    for atoms, factor in polynomial.terms:
        for atom in atoms:
            factor *= VALUES[str(atom.key[0])]
        total += factor
    return total


@given(polynomials(), polynomials())
def test_sums_differences_and_products_are_those_of_the_values(first: Polynomial, second: Polynomial) -> None:
    assert value(first + second) == value(first) + value(second)
    assert value(first - second) == value(first) - value(second)
    assert value(first * second) == value(first) * value(second)


@given(polynomials(), polynomials())
def test_the_order_of_operands_does_not_matter(first: Polynomial, second: Polynomial) -> None:
    assert first + second == second + first
    assert first * second == second * first


@given(polynomials())
def test_a_product_can_be_divided_again(polynomial: Polynomial) -> None:
    assert (polynomial * B).divided(B) == polynomial


def test_what_is_no_multiple_cannot_be_divided() -> None:
    assert (A * B + A).divided(B) is None
    assert (A * integer(6)).divided(integer(4)) is None


def test_quotients_of_known_numbers_are_those_of_python() -> None:
    assert floor_divided(integer(-7), integer(2)).number == -7 // 2
    assert remainder(integer(-7), integer(4)).number == -7 % 4
    assert rounded_up(integer(7), integer(2)).number == 4


def test_a_multiple_divides_exactly() -> None:
    assert floor_divided(A * B, B) == A
    assert rounded_up(A * B, B) == A
    assert remainder(A * B, B).number == 0


def test_adding_the_divisor_less_one_rounds_up() -> None:
    assert floor_divided(N + B - integer(1), B) == rounded_up(N, B)
    assert floor_divided(N + integer(63), integer(64)) == rounded_up(N, integer(64))
    assert floor_divided(N, B) != rounded_up(N, B)


def test_what_an_atom_is_made_of_takes_part() -> None:
    turns = unknown("step", 3, 4, rounded_up(N, B))
    assert (A * turns).has("ceil")
    assert not A.has("ceil")


def test_division_by_zero_is_unknown() -> None:
    assert floor_divided(A, integer(0)).number is None
    assert remainder(integer(4), integer(0)).number is None
