"""Lemmas on changes of a word: what they write, what they leave alone, and that what was written reads back."""

from z3 import UGE, ULE, And, Implies, Not

from on_words import LEVELS, SIZES, aligned, fits, is_aligned
from on_spans import COUNTS, in_word
from statement import Set, given, lemma, span, word
from words import *


def assume_room(codes, slots):
    """Assumes that slots are free, and that no rest is behind them: it would belong to nothing."""
    given(all_have(codes, slots, FREE), Not(has(codes, slots[-1] + 1, REST)))


@lemma("claim: the block is there and all other codes stay; an inner word keeps its bound and loses its mark",
       level=LEVELS, slot=SLOTS, order=SIZES, where=fits)  # fmt: skip
def word_claim(level, slot, order, old):
    given(all_have(old, aligned(slot, order), FREE))
    codes = changed(old, *run(slot, 2**order))
    return word.claim(level, old, slot, order) == successor(level, old, codes)


@lemma("without_block: if just this block is there, its slots are free and all other codes stay; an inner word keeps "
       "its bound and loses its mark",
       level=LEVELS, slot=SLOTS, order=SIZES, where=fits)  # fmt: skip
def word_without_block(level, slot, order, old):
    found = word.has_block(level, old, slot, order)
    codes = changed(old, aligned(slot, order), lambda slot: FREE)
    new = successor(level, old, codes)
    gone = And(word.without_block(level, old, slot, order) == new,
               word.left_without_block(level, old, slot, order) == codes_in(level, new))  # fmt: skip
    is_there = is_run(codes_in(level, old), slot, 2**order)
    return And(found == truth(is_there), Implies(is_there, gone))


@lemma("what is claimed can be freed, which gives back the codes that were there before",
       level=LEVELS, slot=SLOTS, order=SIZES, where=fits)  # fmt: skip
def claimed_and_freed(level, slot, order, old):
    before = codes_in(level, old)
    assume_room(before, aligned(slot, order))
    claimed = word.claim(level, old, slot, order)
    return And(word.has_block(level, claimed, slot, order) == 1,
               word.left_without_block(level, claimed, slot, order) == before)  # fmt: skip


@lemma("a claim only fills, and clearing what was claimed keeps the split slots",
       level=LEVELS, slot=SLOTS, order=SIZES, where=fits)  # fmt: skip
def claims_fill_and_keep_split(level, slot, order, old):
    before = codes_in(level, old)
    assume_room(before, aligned(slot, order))
    claimed = codes_in(level, word.claim(level, old, slot, order))
    return And(word.only_fills(level, before, claimed) == 1,
               word.keeps_split(level, claimed, before) == 1)  # fmt: skip


@lemma("a block of an order fits exactly if the largest place of free slots is no smaller", order=SIZES)
def fit_agrees_with_largest(order, free: Set):
    largest = word.largest(free)
    return (word.fit(free, order) != NONE) == And(largest != NONE, UGE(largest, order))


@lemma("where a block fits, in the part of a word that is inside, it can be claimed and stays inside",
       order=SIZES, inside=(2, 4, 16, 31, 32), where=lambda order, inside: 2**order <= inside)  # fmt: skip
def what_fits_can_be_claimed(order, inside, codes):
    slot = word.fit(word.free_slots(codes) & word.first_slots(inside), order)
    given(slot != NONE)
    return And(word.is_free(codes, slot, order) == 1, ULE(slot + 2**order, inside))


@lemma("a closed run reads back as what it is: as a block if it is as long and aligned as one",
       slot=SLOTS, count=COUNTS[1:], where=in_word)  # fmt: skip
def closed_reads_back(slot, count, old):
    assume_room(old, range(slot, slot + count))
    new = old | span.closed(slot, count)
    orders = [order for order in range(6) if 2**order == count and is_aligned(slot, order)]
    return And(word.block_order(new, slot) == (orders[0] if orders else NONE),
               span.rests_from(new, slot + 1) == count - 1)  # fmt: skip


@lemma("what was written into free slots is there, until a rest is behind it",
       slot=SLOTS, count=COUNTS[1:], where=in_word)  # fmt: skip
def written_is_there(slot, count, old):
    given(all_have(old, range(slot, slot + count), FREE))
    closed = span.closed(slot, count)
    return span.is_there(old | closed, slot, count, closed) == truth(Not(has(old, slot + count, REST)))


@lemma("an open run is no block and not reserved, and its head is found from its end", slot=SLOTS[:31])
def open_reads_back(slot, old):
    given(all_have(old, SLOTS[slot:], FREE))
    new = old | span.open(slot, 32 - slot)
    return And(has(new, slot, RESERVED),
               span.rests_to(new, 31) == slot + 1,
               span.reserved(new) == span.reserved(old),
               word.is_block(new, slot, 0) == 0)  # fmt: skip


@lemma("what is reserved is reserved in each of its slots, and leaves the other reserved slots as they are",
       slot=SLOTS, count=COUNTS[1:], where=in_word)  # fmt: skip
def reserved_reads_back(slot, count, old):
    assume_room(old, range(slot, slot + count))
    reserved = span.reserved_at(slot, count)
    return span.reserved(old | reserved) == span.reserved(old) | reserved
