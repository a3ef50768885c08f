"""What a word is, slot by slot, as the head of `word.rs` and `span.rs` has it: the terms that lemmas are stated in."""

from z3 import And, BitVecVal, BoolVal, Concat, Extract, If, Not, ZeroExt, simplify

FREE, RESERVED, REST, HEAD = 0b00, 0b01, 0b10, 0b11
SPLIT = RESERVED
SLOTS = range(32)
"""The slots of a leaf word; an inner word has the lower half."""
INNER_SLOTS = range(16)
NONE = BitVecVal(2**64 - 1, 64)
"""What stands for `None`."""


def number(value):
    return BitVecVal(value, 64)


def truth(condition):
    """What stands for `true` and `false`."""
    return If(condition, number(1), number(0))


def code(word, slot):
    return Extract(2 * slot + 1, 2 * slot, word)


def has(word, slot, wanted):
    """Whether a slot has a code. There is nothing behind the last."""
    return code(word, slot) == wanted if slot in SLOTS else BoolVal(False)


def all_have(word, slots, wanted):
    return And(*[has(word, slot, wanted) for slot in slots])


def of_codes(code_of, slots=SLOTS):
    """The codes that `code_of` gives for each slot."""
    codes = [code_of(slot) for slot in reversed(slots)]
    return Concat(*[BitVecVal(found, 2) if isinstance(found, int) else found for found in codes])


def changed(word, slots, code_of):
    """The code of each slot in a word of which some slots have other codes."""
    return lambda slot: code_of(slot) if slot in slots else code(word, slot)


def run(slot, count, head=HEAD):
    """The slots of a run, and the code of each: a head and rests."""
    return range(slot, slot + count), lambda place: head if place == slot else REST


def alone(slots, code_of):
    """A word with these codes and otherwise free slots."""
    return of_codes(lambda slot: code_of(slot) if slot in slots else FREE)


def is_run(word, slot, count):
    """A head, rests behind it, and no further rest: the whole of a run or block."""
    rests = all_have(word, range(slot + 1, slot + count), REST)
    return And(has(word, slot, HEAD), rests, Not(has(word, slot + count, REST)))


# A set of slots has the low bit of each slot that belongs to it, and no other bits.


def a_set(bits):
    """The set whose members are given by the bits of a 32-bit term."""
    return simplify(Concat(*[ZeroExt(1, Extract(slot, slot, bits)) for slot in reversed(SLOTS)]))


def both_bits_of(members):
    return of_codes(lambda slot: If(member(members, slot), BitVecVal(0b11, 2), BitVecVal(0, 2)))


def set_of(belongs):
    return of_codes(lambda slot: If(belongs(slot), BitVecVal(1, 2), BitVecVal(0, 2)))


def member(slots, slot):
    """Whether a slot belongs to a set. There is nothing behind the last."""
    return Extract(2 * slot, 2 * slot, slots) == 1 if slot in SLOTS else BoolVal(False)


def all_in(members, slots):
    return And(*[member(members, slot) for slot in slots])


def nth(n, values, holds, otherwise=NONE):
    """The nth, from 0 on, of the `values` for which something holds."""
    # The first, second, ... of those that come later.
    found = [otherwise] * (n + 1)
    for value in reversed(values):
        here = [number(value), *found[:-1]]
        found = [If(holds(value), is_here, later) for is_here, later in zip(here, found)]
    return found[n]


def first(values, holds, otherwise=NONE):
    return nth(0, values, holds, otherwise)


def last(values, holds, otherwise=NONE):
    return first(list(reversed(values)), holds, otherwise)


# The fields of an inner word.


def version(word):
    return Extract(56, 32, word)


def bound(word):
    return Extract(62, 57, word)


def marked(word):
    return Extract(63, 63, word) == 1


def inner_word(code_of, version, bound, mark):
    """`mark`, 6 bits of `bound`, 25 of `version`, and 16 slots."""
    return Concat(If(mark, BitVecVal(1, 1), BitVecVal(0, 1)), bound, version, of_codes(code_of, INNER_SLOTS))


def codes_in(level, word):
    """The codes of a word, and zeros in place of the other fields."""
    return word if level == 0 else ZeroExt(32, Extract(31, 0, word))


def successor(level, old, code_of):
    """The word after `old`, with other codes: an inner word keeps its bound and version, and loses its mark."""
    return of_codes(code_of) if level == 0 else inner_word(code_of, version(old), bound(old), mark=False)
