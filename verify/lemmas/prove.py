#!/usr/bin/env python3
"""prove.py MODULE.wasm [--host LIBRARY] [LEMMA...]: proves the lemmas, or those named, of the compiled arithmetic.

They are stated in `on_words.py`, `on_spans.py` and `on_changes.py`. With `--host`, each function is also called as
this machine executes it, on words drawn at random, and must give what the proof was about.

Ends with 3 if a lemma does not hold, and prints words that refute it; with 1 if something was not decided."""

import argparse
import ctypes
import random
import sys
import time
from pathlib import Path

import z3

import on_changes  # noqa: F401
import on_spans  # noqa: F401
import on_words  # noqa: F401
from execute import Executor
from solver import Solver, Undecided
from statement import LEMMAS, Case, Panics
from wasm import Module
from words import SLOTS


class Refuted(Exception):
    """A lemma does not hold."""


class Host:
    """The same functions, as this machine executes them."""

    def __init__(self, library):
        self.functions, self.random, self.compared = ctypes.CDLL(library), random.Random(1), 0

    def compare(self, case, solver):
        """Compares the results of a case on words that meet its conditions. `False`: none do."""
        model = self.drawn(case, solver)
        if model is None:
            return False
        for name, arguments, result in case.calls:
            function = getattr(self.functions, name)
            function.restype = ctypes.c_uint64
            here = function(*[ctypes.c_uint64(value_of(model, argument)) for argument in arguments])
            if here != value_of(model, result):
                raise Undecided(f"{name} gives {here:#x} on this machine: {described(model, case)}")
            self.compared += 1
        return True

    def drawn(self, case, solver):
        """A model of the conditions, with as much as can be of words drawn at random."""
        words = [(word, z3.BitVecVal(self.word(), 64)) for word in case.words.values()]
        for kept in (~0, self.word(), self.word() & self.word()):
            model = solver.model([*case.conditions, *[(word ^ drawn) & kept == 0 for word, drawn in words]])
            if model is not None:
                return model
        return solver.model(case.conditions)

    def word(self):
        """Random codes, some of them rare."""
        weights = [self.random.choice((1, 1, 20)) for _ in range(4)]
        return sum(code << (2 * slot) for slot, code in enumerate(self.random.choices(range(4), weights, k=32)))


class Prover:
    def __init__(self, module, host):
        self.solver, self.host, self.called = Solver(), host, set()
        self.executor = Executor(module, self.solver)

    def prove(self, lemma):
        """Proves every case of a lemma; says how many there are."""
        cases = 0
        for values in lemma.cases():
            try:
                self.prove_case(lemma, values)
            except (Refuted, Undecided) as found:
                at = "".join(f"{name} = {value}; " for name, value in values.items())
                raise type(found)(f"{at}{found}") from None
            cases += 1
        if cases == 0:
            raise Undecided("it has no cases")
        return cases

    def prove_case(self, lemma, values):
        """Proves a case along every combination of ways through the functions that it calls."""
        case = Case(self.executor, lemma.words())
        possible = False
        while case:
            self.prove_way(case, lemma.state, values)
            possible = possible or self.is_possible(case)
            self.called.update(name for name, _, _ in case.calls)
            case = case.next()
        if not possible:
            raise Undecided("what it assumes is impossible")

    def prove_way(self, case, state, values):
        claim, panic = False, ""
        try:
            claim = case.stated(state, values)
        except Panics as panics:
            panic = f"; {panics}"
        model = self.solver.model([*case.conditions, z3.Not(claim)])
        if model is not None:
            raise Refuted(described(model, case) + panic)

    def is_possible(self, case):
        """Whether any words meet the conditions of a case; if so, the host is asked about some."""
        if self.host:
            return self.host.compare(case, self.solver)
        return self.solver.model(case.conditions) is not None


def value_of(model, term):
    return model.eval(term, model_completion=True).as_long()


def described(model, case):
    """The words of a model, drawn slot by slot, and what the functions make of them."""
    parts = []
    for name, word in case.words.items():
        value = value_of(model, word)
        picture = "".join(".obB"[value >> (2 * slot) & 3] for slot in SLOTS)
        parts.append(f"{name} = {value:#018x} {picture}")
    for name, arguments, result in case.calls:
        given = ", ".join(f"{value_of(model, argument):#x}" for argument in arguments)
        parts.append(f"{name}({given}) = " + ("?" if result is None else f"{value_of(model, result):#x}"))
    return "; ".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("--names", action="store_true", help="print the lemmas' names, and prove none")
    parser.add_argument("--host")
    parser.add_argument("lemmas", nargs="*")
    options = parser.parse_intermixed_args()
    if options.names:
        print("\n".join(lemma.name for lemma in LEMMAS))
        return 0
    chosen = [lemma for lemma in LEMMAS if not options.lemmas or lemma.name in options.lemmas]
    unknown = set(options.lemmas) - {lemma.name for lemma in chosen}
    if unknown or not chosen:
        parser.error(f"no lemma is called {', '.join(sorted(unknown))}")

    module = Module(Path(options.module).read_bytes())
    prover = Prover(module, Host(options.host) if options.host else None)
    proved = refuted = 0
    for lemma in chosen:
        start = time.process_time()
        try:
            cases = prover.prove(lemma)
            proved += 1
            print(f"proved {lemma.name}: {cases} cases, {time.process_time() - start:.1f} s", flush=True)
        except Refuted as found:
            refuted += 1
            print(f"REFUTED {lemma.name}: {found} [{lemma.sentence}]", flush=True)
        except Undecided as reason:
            print(f"UNDECIDED {lemma.name}: {reason}", flush=True)
    without = [name for name in module.exports if name.startswith(("word_", "span_")) and name not in prover.called]
    if without and not options.lemmas:
        print(f"functions without a lemma: {', '.join(without)}")
        proved = 0
    compared = f", {prover.host.compared} results compared" if prover.host else ""
    print(f"{proved} of {len(chosen)} lemmas for all 2^64 words, {prover.solver.questions} queries{compared}")
    return 3 if refuted else 1 if proved < len(chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
