#!/usr/bin/env python3
"""draw.py CRATE N [SEED]: draws N one-line errors in the crate of a folder, such as heap, and prints them as
verify/mutate.sh reads them.

The same SEED, 1 if none is named, draws the same from the same source; a larger N draws the same and more. Kinds take
turns: a comparison swapped or a condition decided, a bound shifted, an operator swapped, a call dropped, an ordering weakened.
Within a kind every place of the crate is as likely as any other. Drawn from are lines of code outside tests, none of them
twice, and no error that a list in verify/mutants has already. Some do not build: draw more.

    verify/draw.py pool 20 7 >target/pool.list
    verify/mutate.sh target/pool.list draw-7-1 target/drawn       # one of them, in a copy
    verify/draw.sh pool 20 7                                      # each, and whether the quick suite notices
"""
import glob
import itertools
import os
import random
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")

# Per kind: a pattern, and what may stand in its place.
KINDS = {
    "comparison": [
        (r" == ", " != "), (r" != ", " == "), (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
        (r" && ", " || "), (r" \|\| ", " && "), (r"\bif (?!let\b)(.+) \{$", "if true {"),
        (r"\bif (?!let\b)(.+) \{$", "if false {"), (r"\bif !(?=\w)", "if "),
        (r"\.is_some\(\)", ".is_none()"), (r"\.is_ok\(\)", ".is_err()"), (r"\.all\(", ".any("), (r"\.any\(", ".all("),
    ],
    "bound": [
        (r" \+ 1\b(?!\w)", ""), (r" - 1\b(?!\w)", ""), (r"(?<=[\w)])\.\.=(?=[\w(])", ".."), (r"(?<=[\w)])\.\.(?=[\w(])", "..="),
        (r"\b0\.\.(?!=)", "1.."), (r"\.min\(", ".max("), (r"\.max\(", ".min("), (r"(?<=[\w)])\.len\(\)", ".len() + 1"),
        (r"\.rev\(\)", ""), (r"(?<= )0(?=[;,)]|$)", "1"), (r"(?<=[( ])1(?= <<)", "2"),
    ],
    "operator": [
        (r" \+ ", " - "), (r" - ", " + "), (r" & ", " | "), (r" \| ", " & "), (r" << ", " >> "), (r" >> ", " << "),
        (r" % ", " / "), (r" / ", " % "), (r" \* ", " + "), (r"&!", "&"), (r" & !", " & "), (r"\bSome\(\w+\)$", "None"),
    ],
    "call": [
        (r"^[a-z_][\w.:]*(\(.*\)|\.[\w.]+\(.*\));$", ""), (r"^[\w.\[\]]+ [-+|&]?= .*;$", ""),
        (r"\.filter\([^()]*(\([^()]*\)[^()]*)*\)", ""), (r"\.or_else\([^()]*(\([^()]*\)[^()]*)*\)", ""),
        (r"^return\b.*;$", ""), (r"^_ = .*;$", ""),
    ],
    "ordering": [
        (r"Ordering::AcqRel", "Ordering::Acquire"), (r"Ordering::AcqRel", "Ordering::Release"),
        (r"Ordering::(AcqRel|SeqCst|Acquire|Release)", "Ordering::Relaxed"),
    ],
}
# Lines that are not code, or that a release build does not execute.
PASSED_OVER = re.compile(
    r"^(//|#|use |pub use |mod |pub mod |assert|debug_assert|unreachable|panic|write!|const _|"
    r"(pub(\(.*\))? )?(struct|fn)\b|(unsafe )?impl\b|where\b)")
# How a module of tests begins.
TESTS = r"^ *#\[cfg\((?:all\()?test\b.*\)\]\n *(?:pub\(crate\) )?mod "


def tests_of(paths):
    """Returns the files and folders of the modules that are tests."""
    found = set()
    for path in paths:
        base, _ = os.path.splitext(path)
        folder = os.path.dirname(path) if os.path.basename(base) in ("lib", "mod") else base
        text = open(path, encoding="utf-8").read()
        found |= {f"{folder}/{name}" for name in re.findall(TESTS + r"(\w+);", text, re.M)}
    return found


def lines_of(path):
    """Returns the lines of code of a file before its tests, each once."""
    text = open(path, encoding="utf-8").read()
    text = re.split(TESTS + r"\w+ \{", text, flags=re.M)[0]
    lines = [line.split(" // ")[0].strip() for line in text.split("\n")]
    return [line for line in lines if line and not PASSED_OVER.match(line)], text


def errors_of(crate):
    """Returns the errors of each kind that can be drawn."""
    errors = {kind: [] for kind in KINDS}
    paths = sorted(glob.glob(f"{ROOT}/{crate}/src/**/*.rs", recursive=True))
    tests = tests_of(paths)
    for path in paths:
        if any(f"{path[:-3]}/".startswith(f"{module}/") for module in tests):
            continue
        file = os.path.relpath(path, f"{ROOT}/{crate}/src")
        lines, text = lines_of(path)
        for line in dict.fromkeys(lines):
            for nth in places(text, line):
                for kind, swaps in KINDS.items():
                    errors[kind] += [(file, line, nth, new) for new in sorted(changed(line, swaps))]
    return errors


def places(text, line):
    """Returns the numbers, from 1, of the places in the text that are separate lines."""
    found = enumerate(re.finditer(re.escape(line), text), 1)
    begin = lambda at: text.rfind("\n", 0, at) + 1
    return [nth for nth, at in found if not text[begin(at.start()):at.start()].strip()
            and text[at.end():].partition("\n")[0].strip()[:2] in ("", "//")]


def changed(line, swaps):
    """Returns all forms of the line with one swap in one place."""
    found = set()
    for pattern, new in swaps:
        for match in re.finditer(pattern, line):
            found.add((line[:match.start()] + match.expand(new) + line[match.end():]).strip())
    return found - {line}


def known():
    """Returns the entries of the lists: file, find and replace."""
    group = r"^file: *(.*)\nfind: *(.*)\n(?:nth: .*\n)?replace: *(.*)$"
    lists = sorted(glob.glob(f"{ROOT}/verify/mutants/*.list"))
    return [found for path in lists for found in re.findall(group, open(path, encoding="utf-8").read(), re.M)]


def is_known(error, lists):
    """Returns whether a list already has this change of the line."""
    file, line, _, new = error
    return any(file == of and line.replace(find, to, 1).strip() == new for of, find, to in lists)


def draw(crate, count, seed):
    source, lists = random.Random(f"{seed} {crate}"), known()
    turns = []
    for errors in errors_of(crate).values():
        source.shuffle(errors)
        turns.append([error for error in errors if not is_known(error, lists)])
    drawn = {}
    for error in itertools.chain.from_iterable(itertools.zip_longest(*turns)):
        if error and len(drawn) < count:
            drawn.setdefault(error[:3], error)
    return list(drawn.values())


def main():
    crate, count, seed = sys.argv[1], int(sys.argv[2]), (sys.argv + ["1"])[3]
    print(f"crate: {crate}\n")
    for number, (file, line, nth, new) in enumerate(draw(crate, count, seed), 1):
        print(f"name: draw-{seed}-{number}\nfile: {file}\nfind: {line}\nnth: {nth}\nreplace: {new}\n")


if __name__ == "__main__":
    main()
