"""How lemmas are stated: over ranges, words and the compiled functions."""

import inspect
import itertools
from dataclasses import dataclass

import z3

from solver import Undecided
from words import a_set

LEMMAS = []


class Set:
    """The annotation of a parameter that is a set of slots; one without is any 64-bit word."""


@dataclass
class Lemma:
    name: str
    sentence: str
    state: object
    ranges: dict
    where: object

    def cases(self):
        """Each combination of values that the lemma is stated for."""
        for values in itertools.product(*self.ranges.values()):
            case = dict(zip(self.ranges, values))
            if self.where is None or self.where(*[case[name] for name in inspect.signature(self.where).parameters]):
                yield case

    def words(self):
        """Its other parameters, each a term for any word or any set of slots."""
        words = {}
        for name, parameter in inspect.signature(self.state).parameters.items():
            if name not in self.ranges:
                words[name] = a_set(z3.BitVec(name, 32)) if parameter.annotation is Set else z3.BitVec(name, 64)
        return words


def lemma(sentence, where=None, **ranges):
    """A statement for every value of `ranges` that `where` allows, and for all words in its other parameters."""

    def register(state):
        LEMMAS.append(Lemma(state.__name__, sentence, state, ranges, where))
        return state

    return register


class Panics(Exception):
    """A compiled function panics."""


class Case:
    """A statement along one way through each function that it calls: what holds there, and what was called."""

    current = None

    def __init__(self, executor, words, choices=(), known=None):
        self.executor, self.words, self.choices = executor, words, choices
        # The ways through the calls before, by the choices that led there.
        self.known = {} if known is None else known
        self.taken, self.conditions, self.calls = [], [], []

    def stated(self, state, values):
        Case.current = self
        return state(**values, **self.words)

    def call(self, function, arguments):
        """The result of a function on the chosen way through it, the first if there is no choice."""
        arguments = [z3.BitVecVal(value, 64) if isinstance(value, int) else value for value in arguments]
        before = tuple(way for way, _ in self.taken)
        if before not in self.known:
            self.known[before] = self.executor.call(function, arguments, self.conditions)
        ways = self.known[before]
        if not ways:
            raise Undecided("what it assumes is impossible")
        chosen = self.choices[len(before)] if len(before) < len(self.choices) else 0
        self.taken.append((chosen, len(ways)))
        way = ways[chosen]
        self.conditions = [*self.conditions, *way.conditions]
        self.calls.append((function, arguments, way.result))
        if way.panic:
            raise Panics(f"{function} panics: {way.panic}")
        return way.result

    def next(self):
        """The same along the next combination of ways, `None` after the last."""
        taken = self.taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken = taken[:-1]
        if not taken:
            return None
        choices = [way for way, _ in taken[:-1]] + [taken[-1][0] + 1]
        return Case(self.executor, self.words, choices, self.known)


def given(*conditions):
    """What the statement assumes; before the calls that need it."""
    Case.current.conditions += conditions


class Functions:
    """The compiled functions of one of the library's modules."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        return lambda *arguments: Case.current.call(f"{self.module}_{name}", arguments)


word, span = Functions("word"), Functions("span")
