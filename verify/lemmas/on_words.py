"""Lemmas on `word.rs`: the fields and codes of a word, its blocks, and where blocks may be."""

from z3 import UGE, ULT, And, BoolVal, Extract, If, Not, Or, ZeroExt

from statement import Set, given, lemma, word
from words import *

LEVELS = (0, 1, 2)
SIZES = range(5)
"""The orders of blocks, in slots. A whole word is a block of the level above."""


def slots_of(level):
    return SLOTS if level == 0 else INNER_SLOTS


def is_aligned(slot, order):
    return slot % 2**order == 0


def aligned(slot, order):
    """The slots of the place of `2^order` slots that a slot is in."""
    start = slot - slot % 2**order
    return range(start, start + 2**order)


def fits(level, slot, order):
    return is_aligned(slot, order) and slot in slots_of(level) and 2**order < len(slots_of(level))


CONSTANTS = (FREE, SPLIT, RESERVED, REST, HEAD, 1 << 63, 63)


@lemma("the constants: the codes as they are here, the mark bit 63, and unsettled the largest bound", which=range(7))
def word_constant(which):
    return word.constant(which) == CONSTANTS[which]


@lemma("codes: all of a leaf word, the lower half of an inner one", level=LEVELS)
def word_codes(level, old):
    return word.codes(level, old) == codes_in(level, old)


@lemma("code: bits 2s and 2s+1 are that of slot s", slot=SLOTS)
def word_code(slot, codes):
    return word.code(codes, slot) == ZeroExt(62, code(codes, slot))


@lemma("bound: bits 57 to 62")
def word_bound(old):
    return word.bound(old) == ZeroExt(58, bound(old))


@lemma("inner: codes and bound are those given, the version stays, and there is no mark")
def word_inner(old, codes, offer):
    given(codes == codes_in(1, codes), ULT(offer, 64))
    new = inner_word(lambda slot: code(codes, slot), version(old), Extract(5, 0, offer), mark=False)
    return word.inner(old, codes, offer) == new


@lemma("marked: the word has a mark and the next version, which wraps beside its neighbours; all else stays")
def word_marked(old):
    new = inner_word(lambda slot: code(old, slot), version(old) + 1, bound(old), mark=True)
    return word.marked(old) == new


@lemma("with_codes: codes are those given; an inner word keeps bound and version and loses its mark", level=LEVELS)
def word_with_codes(level, old, codes):
    given(codes == codes_in(level, codes))
    return word.with_codes(level, old, codes) == successor(level, old, lambda slot: code(codes, slot))


@lemma("only_fills: every slot that differs was free, and is neither free nor split now", level=LEVELS)
def word_only_fills(level, before, after):
    given(before == codes_in(level, before), after == codes_in(level, after))
    fills = lambda slot: And(has(before, slot, FREE), Not(And(level > 0, has(after, slot, SPLIT))))
    fine = [Or(code(before, slot) == code(after, slot), fills(slot)) for slot in SLOTS]
    return word.only_fills(level, before, after) == truth(And(*fine))


@lemma("keeps_split: an inner word has the same slots split in both", level=LEVELS)
def word_keeps_split(level, before, after):
    given(before == codes_in(level, before), after == codes_in(level, after))
    same = [has(before, slot, SPLIT) == has(after, slot, SPLIT) for slot in SLOTS]
    return word.keeps_split(level, before, after) == truth(Or(level == 0, And(*same)))


@lemma("bound_and_mark: the bound, and 64 more if there is a mark")
def word_bound_and_mark(old):
    return word.bound_and_mark(old) == ZeroExt(58, bound(old)) + If(marked(old), BitVecVal(64, 64), BitVecVal(0, 64))


@lemma("unmarked_bound: the bound, if there is no mark")
def word_unmarked_bound(old):
    return word.unmarked_bound(old) == If(marked(old), NONE, ZeroExt(58, bound(old)))


@lemma("allows: no mark, and a bound of at least the offer", offer=range(64))
def word_allows(offer, old):
    return word.allows(old, offer) == truth(And(Not(marked(old)), UGE(bound(old), offer)))


@lemma("passes: no mark, and the slot is split", slot=INNER_SLOTS)
def word_passes(slot, old):
    return word.passes(old, slot) == truth(And(Not(marked(old)), has(old, slot, SPLIT)))


@lemma("first_slots: the slots before the given one", count=range(33))
def word_first_slots(count):
    return word.first_slots(count) == set_of(lambda slot: BoolVal(slot < count))


@lemma("free_slots: those with 00")
def word_free_slots(codes):
    return word.free_slots(codes) == set_of(lambda slot: has(codes, slot, FREE))


@lemma("split_slots: those with 01")
def word_split_slots(codes):
    return word.split_slots(codes) == set_of(lambda slot: has(codes, slot, SPLIT))


@lemma("both_bits: 11 in each slot of the set")
def word_both_bits(members: Set):
    return word.both_bits(members) == both_bits_of(members)


@lemma("block_bits: both bits of the first 2^order slots", order=range(6))
def word_block_bits(order):
    return word.block_bits(order) == alone(range(2**order), lambda slot: 0b11)


@lemma("block: a head, and rests in the other slots of 2^order", order=range(6))
def word_block(order):
    return word.block(order) == alone(*run(0, 2**order))


@lemma("block_order: the slot and the rests behind it are 2^k, aligned, and no further rest; else none", slot=SLOTS)
def word_block_order(slot, codes):
    orders = [order for order in range(6) if is_aligned(slot, order)]
    with_rests = codes | number(HEAD << (2 * slot))
    return word.block_order(codes, slot) == first(orders, lambda order: is_run(with_rests, slot, 2**order))


@lemma("is_block: a head at the slot, rests in the others of 2^order, and no further rest",
       slot=SLOTS, order=SIZES, where=lambda slot, order: slot + 2**order <= 32)  # fmt: skip
def word_is_block(slot, order, codes):
    return word.is_block(codes, slot, order) == truth(is_run(codes, slot, 2**order))


@lemma("places: the multiples of 2^order from which on 2^order slots are free", order=range(6))
def word_places(order, free):
    starts = lambda slot: And(is_aligned(slot, order), all_in(free, aligned(slot, order)))
    return word.places(free, order) == set_of(starts)


@lemma("fit: the first aligned place whose buddy is in use; the first, if the buddies of all are free; else none",
       order=SIZES)  # fmt: skip
def word_fit(order, free):
    places = SLOTS[:: 2**order]
    fits = lambda slot: all_in(free, aligned(slot, order))
    spares = lambda slot: And(fits(slot), Not(fits(slot ^ 2**order)))
    return word.fit(free, order) == first(places, spares, first(places, fits))


@lemma("lone_fit: the first aligned place whose buddy is in use, else none", order=SIZES)
def word_lone_fit(order, free):
    lone = lambda slot: And(all_in(free, aligned(slot, order)), Not(all_in(free, aligned(slot ^ 2**order, order))))
    return word.lone_fit(free, order) == first(SLOTS[:: 2**order], lone)


@lemma("is_free: 00 in each of 2^order slots", slot=SLOTS, order=SIZES, where=is_aligned)
def word_is_free(slot, order, codes):
    return word.is_free(codes, slot, order) == truth(all_have(codes, aligned(slot, order), FREE))


@lemma("largest: the largest order of a place of free slots, none if none is free")
def word_largest(free: Set):
    some = lambda order: Or(*[all_in(free, aligned(slot, order)) for slot in SLOTS[:: 2**order]])
    return word.largest(free) == last(range(6), some)


@lemma("largest_at: the largest order of a place of free slots that begins at the slot", slot=SLOTS)
def word_largest_at(slot, free):
    orders = [order for order in range(6) if is_aligned(slot, order)]
    return word.largest_at(free, slot) == last(orders, lambda order: all_in(free, aligned(slot, order)), number(0))


@lemma("grown: the largest order, of at most the word's, of a place of free slots that contains a free one",
       most=(1, 2, 4, 5), slot=SLOTS, where=lambda most, slot: slot < 2**most)  # fmt: skip
def word_grown(most, slot, codes):
    given(all_have(codes, [slot], FREE))
    is_free = lambda order: all_have(codes, aligned(slot, order), FREE)
    return word.grown(codes, slot, most) == last(range(most + 1), is_free)


@lemma("from_slot: each slot of the set in turn, from the start on, and then from 0", start=SLOTS, place=range(3))
def word_nth_from_slot(start, place, members: Set):
    turn = [*SLOTS[start:], *SLOTS[:start]]
    return word.nth_from_slot(members, start, place) == nth(place, turn, lambda slot: member(members, slot))
