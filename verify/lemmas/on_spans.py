"""Lemmas on `span.rs`: runs that need not be blocks, open heads, reserved slots, and stretches of free slots."""

from z3 import And, If, Not

from statement import Set, lemma, span
from words import *


def in_word(slot, count):
    return slot + count <= 32


COUNTS = range(33)


@lemma("bits: both bits of the slots", slot=SLOTS, count=COUNTS, where=in_word)
def span_bits(slot, count):
    return span.bits(slot, count) == alone(range(slot, slot + count), lambda _: 0b11)


@lemma("rests: a rest in each slot", slot=SLOTS, count=COUNTS, where=in_word)
def span_rests(slot, count):
    return span.rests(slot, count) == alone(range(slot, slot + count), lambda _: REST)


@lemma("reserved_at: the reserved code in each slot", slot=SLOTS, count=COUNTS, where=in_word)
def span_reserved_at(slot, count):
    return span.reserved_at(slot, count) == alone(range(slot, slot + count), lambda _: RESERVED)


@lemma("closed: a head, and rests in the other slots", slot=SLOTS, count=COUNTS[1:], where=in_word)
def span_closed(slot, count):
    return span.closed(slot, count) == alone(*run(slot, count))


@lemma("open: 01, and rests in the other slots", slot=SLOTS, count=COUNTS[1:], where=in_word)
def span_open(slot, count):
    return span.open(slot, count) == alone(*run(slot, count, head=RESERVED))


@lemma("hidden: 01, and a head in the last slot", slot=SLOTS, count=COUNTS[1:], where=in_word)
def span_hidden(slot, count):
    last = slot + count - 1
    return span.hidden(slot, count) == alone(range(slot, slot + count), lambda at: HEAD if at == last else RESERVED)


@lemma("rest_slots: those with 10")
def span_rest_slots(codes):
    return span.rest_slots(codes) == set_of(lambda slot: has(codes, slot, REST))


@lemma("heads: the slots with 11")
def span_heads(codes):
    return span.heads(codes) == set_of(lambda slot: has(codes, slot, HEAD))


@lemma("reserved: the slots with 01 and no rest behind it")
def span_reserved(codes):
    return span.reserved(codes) == set_of(lambda slot: And(has(codes, slot, RESERVED), Not(has(codes, slot + 1, REST))))


def length(belongs, slot):
    """How many slots, from one on, something is true of."""
    return first(range(33), lambda count: Not(belongs(slot + count)))


def start(belongs, slot):
    """The first slot of those, up to one, that something is true of; the next one if it is not true of that."""
    return first(range(slot + 2), lambda first: And(*[belongs(place) for place in range(first, slot + 1)]))


@lemma("length_from: how many slots of the set stand side by side from the slot on", slot=range(33))
def span_length_from(slot, members):
    return span.length_from(members, slot) == length(lambda place: member(members, place), slot)


@lemma("start_to: the first slot of the set from which on it has all up to the slot", slot=SLOTS)
def span_start_to(slot, members):
    return span.start_to(members, slot) == start(lambda place: member(members, place), slot)


@lemma("rests_from: how many rests stand side by side from the slot on", slot=range(33))
def span_rests_from(slot, codes):
    return span.rests_from(codes, slot) == length(lambda place: has(codes, place, REST), slot)


@lemma("rests_to: the first slot from which on there are rests up to the slot", slot=SLOTS)
def span_rests_to(slot, codes):
    return span.rests_to(codes, slot) == start(lambda place: has(codes, place, REST), slot)


@lemma("is_there: the codes of the slots are those of the other word, and no further rest is behind them",
       slot=SLOTS, count=COUNTS, where=in_word)  # fmt: skip
def span_is_there(slot, count, old, codes):
    same = And(*[code(old, place) == code(codes, place) for place in range(slot, slot + count)])
    return span.is_there(old, slot, count, codes) == truth(And(same, Not(has(old, slot + count, REST))))


@lemma("starts: the slots from which on `count` slots of the set stand side by side", count=COUNTS[1:])
def span_starts(count, free: Set):
    return span.starts(free, count) == set_of(lambda slot: all_in(free, range(slot, slot + count)))


def is_stretch(free, slot, length):
    """Whether slots are in a set, and those on either side are not."""
    slots = range(slot, slot + length)
    return And(Not(member(free, slot - 1)), all_in(free, slots), Not(member(free, slot + length)))


@lemma("fit: the start of the shortest stretch of free slots that has `count`, the first of several; else none",
       count=COUNTS[1:])  # fmt: skip
def span_fit(count, free: Set):
    stretches = [(slot, length) for length in range(count, 33) for slot in range(33 - length)]
    shortest = NONE
    for slot, length in reversed(stretches):
        shortest = If(is_stretch(free, slot, length), number(slot), shortest)
    return span.fit(free, count) == shortest
