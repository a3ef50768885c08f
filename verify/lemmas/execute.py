"""Executes functions of a WebAssembly module on z3 terms: a call gives one term for all inputs.

A function runs once for every way through it that the assumptions allow. What is not needed for arithmetic is
refused, never guessed. `unreachable`, and a call of Rust's panic functions, is a panic."""

import operator
from dataclasses import dataclass, replace

import z3

import wasm
from solver import Undecided


def zeros(places):
    """Counts the zeros before the first one, at the `places` of a width in their order."""

    def count(a):
        result = z3.BitVecVal(a.size(), a.size())
        for zeros_before, place in reversed(list(enumerate(places(a.size())))):
            result = z3.If(z3.Extract(place, place, a) == 1, z3.BitVecVal(zeros_before, a.size()), result)
        return result

    return count


def ones(a):
    bits = (z3.ZeroExt(a.size() - 1, z3.Extract(place, place, a)) for place in range(a.size()))
    return sum(bits, z3.BitVecVal(0, a.size()))


def shift(shifted):
    """Shifts take their distance modulo the width."""
    return lambda a, b: shifted(a, b & (a.size() - 1))


def bit(compared):
    """Comparisons leave a 32-bit 0 or 1."""
    return lambda *operands: z3.If(compared(*operands), z3.BitVecVal(1, 32), z3.BitVecVal(0, 32))


def wide(operations, distance):
    """The operations on 32 bits, and those on 64 bits, whose opcodes follow at a distance."""
    return operations | {op + distance: operation for op, operation in operations.items()}


UNARY = {
    **wide({0x45: bit(lambda a: a == 0)}, 0x50 - 0x45),
    **wide({0x67: zeros(lambda width: range(width - 1, -1, -1)), 0x68: zeros(range), 0x69: ones}, 0x79 - 0x67),
    0xA7: lambda a: z3.Extract(31, 0, a),
    0xAC: lambda a: z3.SignExt(32, a),
    0xAD: lambda a: z3.ZeroExt(32, a),
}
BINARY = {
    **wide({
        0x46: bit(operator.eq), 0x47: bit(operator.ne),
        0x48: bit(operator.lt), 0x49: bit(z3.ULT), 0x4A: bit(operator.gt), 0x4B: bit(z3.UGT),
        0x4C: bit(operator.le), 0x4D: bit(z3.ULE), 0x4E: bit(operator.ge), 0x4F: bit(z3.UGE),
    }, 0x51 - 0x46),
    **wide({
        0x6A: operator.add, 0x6B: operator.sub, 0x6C: operator.mul,
        0x71: operator.and_, 0x72: operator.or_, 0x73: operator.xor,
        0x74: shift(operator.lshift), 0x75: shift(operator.rshift), 0x76: shift(z3.LShR),
        0x77: z3.RotateLeft, 0x78: z3.RotateRight,
    }, 0x79 - 0x67),
}  # fmt: skip
# The bytes in memory and the bits of the result.
LOADS = {0x28: (4, 32), 0x29: (8, 64), 0x2D: (1, 32), 0x2F: (2, 32), 0x31: (1, 64), 0x33: (2, 64), 0x35: (4, 64)}
STORES = {0x36: 4, 0x37: 8, 0x3A: 1, 0x3B: 2, 0x3C: 1, 0x3D: 2, 0x3E: 4}


@dataclass(frozen=True)
class Way:
    """A way through a function: what has to hold for it, and the result, or what panics."""

    conditions: tuple
    result: object = None
    panic: str = None


@dataclass(frozen=True)
class World:
    """What has to hold for a way, and what it has changed."""

    conditions: tuple
    globals: tuple
    memory: dict


@dataclass(frozen=True)
class Frame:
    world: World
    locals: tuple
    stack: tuple = ()
    labels: tuple = ()
    at: int = 0


@dataclass(frozen=True)
class Label:
    """A block that is being executed: where a branch to it goes, how many values it takes, and those below them."""

    target: int
    takes: int
    below: tuple
    stays: bool


class Executor:
    """Executes the functions of a module."""

    def __init__(self, module, solver):
        self.module, self.solver = module, solver

    def call(self, name, arguments, assumptions):
        """The ways through an exported function that the assumptions allow. They exclude each other."""
        self.assumptions, self.panics = list(assumptions), []
        initial = tuple(z3.BitVecVal(value, width) for width, value in self.module.globals)
        returns = self.run(self.module.exports[name], arguments, World((), initial, {}))
        ways = [Way(world.conditions, results[0]) for results, world in returns] + self.panics
        others = [z3.Not(z3.And(*way.conditions)) for way in ways]
        if self.solver.model([*assumptions, *others]) is not None:
            raise Undecided(f"{name}: the ways found are not all")
        return ways

    def run(self, number, arguments, world):
        """Every way through a function: what it leaves on the stack, and the world afterwards."""
        widths, instructions = self.module.body(number)
        zeroed = tuple(z3.BitVecVal(0, width) for width in widths[len(arguments) :])
        outermost = Label(len(instructions), len(self.module.signatures[number][1]), (), stays=False)
        frames, returns = [Frame(world, tuple(arguments) + zeroed, labels=(outermost,))], []
        while frames:
            frame = frames.pop()
            if frame.at >= len(instructions):
                returns.append((frame.stack, frame.world))
            else:
                frames += self.step(replace(frame, at=frame.at + 1), instructions[frame.at])
        return returns

    def step(self, frame, instruction):
        """The frames after one instruction."""
        op, value, stack = instruction.op, instruction.value, frame.stack
        if op in UNARY:
            return [push(frame, 1, UNARY[op](stack[-1]))]
        if op in BINARY:
            return [push(frame, 2, BINARY[op](*stack[-2:]))]
        if op == wasm.SELECT:
            return [push(frame, 3, z3.If(stack[-1] != 0, stack[-3], stack[-2]))]
        if op in (wasm.I32_CONST, wasm.I64_CONST):
            return [push(frame, 0, z3.BitVecVal(value, 32 if op == wasm.I32_CONST else 64))]
        if op == wasm.LOCAL_GET:
            return [push(frame, 0, frame.locals[value])]
        if op in (wasm.LOCAL_SET, wasm.LOCAL_TEE):
            changed = replace(frame, locals=with_item(frame.locals, value, stack[-1]))
            return [changed if op == wasm.LOCAL_TEE else replace(changed, stack=stack[:-1])]
        if op == wasm.GLOBAL_GET:
            return [push(frame, 0, frame.world.globals[value])]
        if op == wasm.GLOBAL_SET:
            world = replace(frame.world, globals=with_item(frame.world.globals, value, stack[-1]))
            return [replace(frame, world=world, stack=stack[:-1])]
        if op == wasm.DROP:
            return [replace(frame, stack=stack[:-1])]
        if op == wasm.CALL:
            return self.called(frame, value)
        if op == wasm.UNREACHABLE:
            self.panics.append(Way(frame.world.conditions, panic="unreachable"))
            return []
        if op in LOADS:
            return self.loaded(frame, value, *LOADS[op])
        if op in STORES:
            return [stored(frame, value, STORES[op])]
        return self.jumped(frame, instruction)

    def jumped(self, frame, instruction):
        op, value = instruction.op, instruction.value
        if op in (wasm.BLOCK, wasm.LOOP):
            return [entered(frame, instruction, frame.at)]
        if op == wasm.END:
            return [replace(frame, labels=frame.labels[:-1])]
        if op == wasm.ELSE:
            return [replace(frame, at=instruction.end)]
        if op == wasm.BR:
            return [branched(frame, value)]
        if op == wasm.RETURN:
            return [branched(frame, len(frame.labels) - 1)]
        chosen, frame = frame.stack[-1], replace(frame, stack=frame.stack[:-1])
        if op == wasm.BR_IF:
            return [branched(way, value) if taken else way for taken, way in self.ways(frame, chosen != 0)]
        if op == wasm.IF:
            otherwise = instruction.end if instruction.otherwise is None else instruction.otherwise + 1
            ways = self.ways(frame, chosen != 0)
            return [entered(way, instruction, way.at if taken else otherwise) for taken, way in ways]
        if op == wasm.BR_TABLE:
            return self.switched(frame, chosen, value)
        raise Undecided(f"instruction {op:#x}")

    def switched(self, frame, chosen, targets):
        after = []
        for place, target in enumerate(targets[:-1]):
            ways = dict(self.ways(frame, chosen == place))
            if True in ways:
                after.append(branched(ways[True], target))
            if False not in ways:
                return after
            frame = ways[False]
        return after + [branched(frame, targets[-1])]

    def called(self, frame, number):
        if "9panicking" in self.module.names.get(number, ""):
            self.panics.append(Way(frame.world.conditions, panic=self.module.names[number]))
            return []
        taken = len(self.module.signatures[number][0])
        below = frame.stack[: len(frame.stack) - taken]
        returns = self.run(number, frame.stack[len(frame.stack) - taken :], frame.world)
        return [replace(frame, stack=below + results, world=world) for results, world in returns]

    def ways(self, frame, condition):
        """Whether a condition can be met, and whether it can fail, each with the frame in which it does."""
        condition = z3.simplify(condition)
        if z3.is_true(condition) or z3.is_false(condition):
            return [(z3.is_true(condition), frame)]
        ways = []
        for taken, met in ((True, condition), (False, z3.Not(condition))):
            conditions = frame.world.conditions + (met,)
            if self.solver.model([*self.assumptions, *conditions]) is not None:
                ways.append((taken, replace(frame, world=replace(frame.world, conditions=conditions))))
        return ways

    def loaded(self, frame, offset, count, width):
        """A load, in a frame for each address that is possible."""
        after, address = [], z3.simplify(frame.stack[-1] + offset)
        while not z3.is_bv_value(address):
            model = self.solver.model([*self.assumptions, *frame.world.conditions])
            ways = dict(self.ways(frame, address == model.eval(address, model_completion=True)))
            found = push(ways[True], 1, model.eval(frame.stack[-1], model_completion=True))
            after += self.loaded(found, offset, count, width)
            if False not in ways:
                return after
            frame = ways[False]
        stored = [self.byte(frame.world, address.as_long() + place) for place in reversed(range(count))]
        value = z3.Concat(*stored) if count > 1 else stored[0]
        return after + [push(frame, 1, z3.ZeroExt(width - 8 * count, value))]

    def byte(self, world, address):
        if address in world.memory:
            return world.memory[address]
        for start, data in self.module.segments:
            if start <= address < start + len(data):
                return z3.BitVecVal(data[address - start], 8)
        # Below where the stack begins lies whatever there was, such as in the value of an option that has none.
        if 0 <= address < self.module.globals[0][1]:
            return z3.FreshConst(z3.BitVecSort(8), "unwritten")
        raise Undecided(f"a load from {address}, where nothing was stored")


def push(frame, taken, value):
    """The frame with a value in place of those that were taken for it."""
    return replace(frame, stack=frame.stack[: len(frame.stack) - taken] + (z3.simplify(value),))


def with_item(items, place, item):
    return items[:place] + (item,) + items[place + 1 :]


def entered(frame, block, at):
    is_loop = block.op == wasm.LOOP
    target, takes = (frame.at, 0) if is_loop else (block.end + 1, block.leaves)
    label = Label(target, takes, frame.stack, stays=is_loop)
    return replace(frame, labels=frame.labels + (label,), at=at)


def branched(frame, depth):
    """The frame after a branch to a label: it stays in a loop, and leaves any other block."""
    place = len(frame.labels) - 1 - depth
    label = frame.labels[place]
    stack = label.below + frame.stack[len(frame.stack) - label.takes :]
    return replace(frame, stack=stack, labels=frame.labels[: place + label.stays], at=label.target)


def stored(frame, offset, count):
    address, value = z3.simplify(frame.stack[-2] + offset), frame.stack[-1]
    if not z3.is_bv_value(address):
        raise Undecided("a store to an address that depends on the input")
    parts = [z3.simplify(z3.Extract(8 * place + 7, 8 * place, value)) for place in range(count)]
    changed = {address.as_long() + place: part for place, part in enumerate(parts)}
    world = replace(frame.world, memory=frame.world.memory | changed)
    return replace(frame, world=world, stack=frame.stack[:-2])
