"""Integers of a kernel as polynomials over what is only known at run time: constants, block ids, loop counters."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Atom:
    """One unknown integer.

    `kind` says where it comes from: "parameter", "bid", "blocks", "dimension" (of an array), "step" (the how many-th
    turn of a loop), "lane" (an element of `ct.arange`), "ceil", "floor", "mod", "minimum", "maximum", "merge", "other".
    """

    kind: str
    key: tuple[object, ...] = ()

    @cached_property
    def order(self) -> str:
        """A text to sort by."""
        return f"{self.kind}{self.key}"

    def __hash__(self) -> int:
        return hash(self.order)

    @property
    def parts(self) -> tuple["Polynomial", ...]:
        """The polynomials that it is made of."""
        return tuple(each for each in self.key if isinstance(each, Polynomial))


Monomial = tuple[Atom, ...]


@dataclass(frozen=True)
class Polynomial:
    """A sum of products of atoms with integer factors."""

    terms: tuple[tuple[Monomial, int], ...]

    def __hash__(self) -> int:
        return hash(self.terms)

    def __repr__(self) -> str:
        return " + ".join(f"{factor}*{'*'.join(each.order for each in atoms)}" for atoms, factor in self.terms) or "0"

    def __add__(self, other: "Polynomial") -> "Polynomial":
        terms = dict(self.terms)
        for monomial, factor in other.terms:
            terms[monomial] = terms.get(monomial, 0) + factor
        return _of_terms(terms)

    def __sub__(self, other: "Polynomial") -> "Polynomial":
        return self + other * integer(-1)

    def __mul__(self, other: "Polynomial") -> "Polynomial":
        terms: dict[Monomial, int] = {}
        for first, factor in self.terms:
            for second, other_factor in other.terms:
                product = tuple(sorted((*first, *second), key=lambda atom: atom.order))
                terms[product] = terms.get(product, 0) + factor * other_factor
        return _of_terms(terms)

    @property
    def number(self) -> int | None:
        """Its value where it has no unknowns."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == () and len(self.terms) == 1 else None

    @property
    def atom(self) -> Atom | None:
        """The atom that it is, if it is just one."""
        match self.terms:
            case (((Atom() as atom,), 1),):
                return atom
        return None

    def divided(self, divisor: "Polynomial") -> "Polynomial | None":
        """The exact quotient by one term, or None where it is not known to leave no rest."""
        if len(divisor.terms) != 1:
            return integer(1) if self == divisor else None
        ((atoms, factor),) = divisor.terms
        terms: dict[Monomial, int] = {}
        for monomial, count in self.terms:
            rest = list(monomial)
            for atom in atoms:
                if atom not in rest:
                    return None
                rest.remove(atom)
            if count % factor:
                return None
            terms[tuple(rest)] = count // factor
        return _of_terms(terms)

    def atoms(self) -> Iterator[Atom]:
        """Every atom, also those inside of others."""
        for monomial, _ in self.terms:
            for atom in monomial:
                yield atom
                for part in atom.parts:
                    yield from part.atoms()

    def has(self, *kinds: str) -> bool:
        """Whether an atom of one of these kinds takes part."""
        return any(atom.kind in kinds for atom in self.atoms())


def _of_terms(terms: dict[Monomial, int]) -> Polynomial:
    kept = [(monomial, factor) for monomial, factor in terms.items() if factor]
    return Polynomial(tuple(sorted(kept, key=lambda term: [atom.order for atom in term[0]])))


def integer(value: int) -> Polynomial:
    """A known integer."""
    return Polynomial((((), value),) if value else ())


def unknown(kind: str, *key: object) -> Polynomial:
    """One atom."""
    return Polynomial((((Atom(kind, key),), 1),))


def floor_divided(a: Polynomial, b: Polynomial) -> Polynomial:
    """`a // b`; `(x + b - 1) // b` is known as the quotient of x rounded up."""
    if b.number == 0:
        return unknown("other", "division by zero")
    if a.number is not None and b.number is not None:
        return integer(a.number // b.number)
    exact = a.divided(b)
    if exact is not None:
        return exact
    numerator = a - b + integer(1)
    if _adds(a, b):
        return rounded_up(numerator, b)
    return unknown("floor", a, b)


def _adds(a: Polynomial, b: Polynomial) -> bool:
    """Whether b - 1 was added to something to get a."""
    constant = dict(a.terms).get((), 0)
    if b.number is not None:
        return b.number > 1 and constant == b.number - 1
    return constant == -1 and all(dict(a.terms).get(monomial) == factor for monomial, factor in b.terms)


def rounded_up(a: Polynomial, b: Polynomial) -> Polynomial:
    """The quotient rounded up, `ct.cdiv(a, b)`."""
    if a.number is not None and b.number:
        return integer(-(-a.number // b.number))
    exact = a.divided(b) if b.number != 0 else None
    return exact if exact is not None else unknown("ceil", a, b)


def remainder(a: Polynomial, b: Polynomial) -> Polynomial:
    """`a % b`."""
    if a.number is not None and b.number:
        return integer(a.number % b.number)
    if b.number != 0 and a.divided(b) is not None:
        return integer(0)
    return unknown("mod", a, b)
