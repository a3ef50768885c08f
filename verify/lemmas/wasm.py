"""Reads a WebAssembly module: its functions as lists of instructions, its constants in memory."""

from dataclasses import dataclass

from solver import Undecided

UNREACHABLE, BLOCK, LOOP, IF, ELSE, END = 0x00, 0x02, 0x03, 0x04, 0x05, 0x0B
BR, BR_IF, BR_TABLE, RETURN, CALL, DROP, SELECT = 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x1A, 0x1B
LOCAL_GET, LOCAL_SET, LOCAL_TEE, GLOBAL_GET, GLOBAL_SET = 0x20, 0x21, 0x22, 0x23, 0x24
I32_CONST, I64_CONST = 0x41, 0x42
WIDTHS = {0x7F: 32, 0x7E: 64}


class Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def take(self, count):
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, signed=False):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << shift) if signed and byte & 64 else value

    def name(self):
        return self.take(self.number()).decode()

    def numbered_name(self):
        return self.number(), self.name()

    def list(self, item):
        return [item() for _ in range(self.number())]


@dataclass(frozen=True)
class Instruction:
    op: int
    value: object = None
    # Of a block: how many values it leaves, and where its `else` and its `end` are.
    leaves: int = 0
    otherwise: int = None
    end: int = None


class Module:
    def __init__(self, data):
        self.types, self.signatures, self.exports, self.names = [], [], {}, {}
        self.bodies, self.globals, self.segments, self.read_bodies = [], [], [], {}
        reader = Reader(data)
        if reader.take(8) != b"\0asm\1\0\0\0":
            raise Undecided("this is no WebAssembly module")
        sections = {0: self.custom, 1: self.function_types, 2: self.imports, 3: self.functions, 6: self.variables,
                    7: self.exported, 10: self.code, 11: self.data}  # fmt: skip
        while reader.at < len(data):
            section, contents = reader.byte(), Reader(reader.take(reader.number()))
            sections.get(section, lambda _: None)(contents)

    def function_types(self, reader):
        def one():
            reader.byte()
            return reader.list(reader.byte), reader.list(reader.byte)

        self.types = reader.list(one)

    def imports(self, reader):
        if reader.number():
            raise Undecided("the module imports something")

    def functions(self, reader):
        self.signatures = [self.types[number] for number in reader.list(reader.number)]

    def variables(self, reader):
        def one():
            kind, _mutable = reader.byte(), reader.byte()
            return WIDTHS[kind], self.constant(reader)

        self.globals = reader.list(one)

    @staticmethod
    def constant(reader):
        op, value, end = reader.byte(), reader.number(signed=True), reader.byte()
        if op not in (I32_CONST, I64_CONST) or end != END:
            raise Undecided("an initial value that is no constant")
        return value

    def exported(self, reader):
        def one():
            return reader.name(), reader.byte(), reader.number()

        self.exports = {name: number for name, kind, number in reader.list(one) if kind == 0}

    def code(self, reader):
        self.bodies = reader.list(lambda: reader.take(reader.number()))

    def data(self, reader):
        def one():
            if reader.number() != 0:
                raise Undecided("a data segment of another kind")
            return self.constant(reader), reader.take(reader.number())

        self.segments = reader.list(one)

    def custom(self, reader):
        if reader.name() != "name":
            return
        while reader.at < len(reader.data):
            kind, contents = reader.byte(), Reader(reader.take(reader.number()))
            if kind == 1:
                self.names = dict(contents.list(contents.numbered_name))

    def body(self, number):
        """The widths of a function's locals, parameters first, and its instructions."""
        if number not in self.read_bodies:
            reader = Reader(self.bodies[number])
            declared = reader.list(lambda: (reader.number(), reader.byte()))
            kinds = self.signatures[number][0] + [kind for count, kind in declared for _ in range(count)]
            instructions = self.instructions(reader)
            self.read_bodies[number] = [WIDTHS[kind] for kind in kinds], instructions
        return self.read_bodies[number]

    def instructions(self, reader):
        instructions, open_blocks = [], []
        while reader.at < len(reader.data):
            op, at = reader.byte(), len(instructions)
            instructions.append(self.instruction(op, reader))
            if op in (BLOCK, LOOP, IF):
                open_blocks.append([at, None])
            elif op == ELSE:
                open_blocks[-1][1] = at
            elif op == END and open_blocks:
                start, otherwise = open_blocks.pop()
                for place in [start] + [otherwise] * (otherwise is not None):
                    found = instructions[place]
                    instructions[place] = Instruction(found.op, found.value, found.leaves, otherwise, at)
        return instructions

    def instruction(self, op, reader):
        if op in (BLOCK, LOOP, IF):
            kind = reader.byte()
            if kind != 0x40 and kind not in WIDTHS:
                raise Undecided("a block that takes values")
            return Instruction(op, leaves=int(kind != 0x40))
        if op in (BR, BR_IF, CALL, LOCAL_GET, LOCAL_SET, LOCAL_TEE, GLOBAL_GET, GLOBAL_SET):
            return Instruction(op, reader.number())
        if op == BR_TABLE:
            return Instruction(op, reader.list(reader.number) + [reader.number()])
        if op in (I32_CONST, I64_CONST):
            return Instruction(op, reader.number(signed=True))
        if 0x28 <= op <= 0x3E:
            reader.number()
            return Instruction(op, reader.number())
        if op in (UNREACHABLE, ELSE, END, RETURN, DROP, SELECT) or 0x45 <= op <= 0xC4:
            return Instruction(op)
        raise Undecided(f"instruction {op:#x} at {reader.at}")
