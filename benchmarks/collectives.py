"""What a compiled program sends between devices: read from its text, loops and branches included.

Loops whose number of passes is in the program count so many times. Others (conjugate gradients, landmarks, the line
search) are kept apart, and a caller says how often they pass.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

BYTES = {"pred": 1, "s8": 1, "u8": 1, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8, "bf16": 2, "f16": 2}
KINDS = "all-reduce", "all-gather", "collective-permute", "all-to-all"
COLLECTIVE = re.compile(rf"= (\(.*?\)|\S+) ({'|'.join(KINDS)})(?:-start)?\(")
HEAD = re.compile(r"(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
CALLED = re.compile(r"(?:to_apply|calls|body|condition|true_computation|false_computation)=%?([\w.\-]+)")
TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')


@dataclass(frozen=True)
class Message:
    """One collective: how many bytes of results each device has of it, and the loops of unknown length around it."""

    kind: str
    bytes: int
    loops: tuple[str, ...]


def array_sizes(shape: str) -> list[tuple[int, int]]:
    """Entries and bytes of every array in a shape such as `(f64[3,128]{1,0}, s32[])`."""
    found = re.findall(r"(\w+)\[([\d,]*)\]", re.sub(r"/\*.*?\*/", "", shape))
    entries = [(kind, int(np.prod([int(n) for n in dims.split(",") if n]))) for kind, dims in found if kind in BYTES]
    return [(count, count * BYTES[kind]) for kind, count in entries]


def largest(text: str) -> dict[str, int]:
    """Number of entries of the largest array that each kind of message carries."""
    found: dict[str, int] = {}
    for shape, kind in COLLECTIVE.findall(text):
        found[kind] = max(found.get(kind, 0), *(entries for entries, _ in array_sizes(shape)))
    return found


def collectives(text: str) -> Counter[Message]:
    """Every message of a program, with the number of times that it is sent."""
    bodies, name, entry = {}, "", ""
    for line in text.splitlines():
        if head := HEAD.match(line):
            name = head[1]
            bodies[name] = []
            entry = name if line.startswith("ENTRY") else entry
        elif name:
            bodies[name].append(line)
    known: dict[str, Counter[Message]] = {}

    def of(name: str) -> Counter[Message]:
        if name not in known:
            known[name] = Counter()
            for line in bodies.get(name, ()):
                known[name] += of_line(line)
        return known[name]

    def of_line(line: str) -> Counter[Message]:
        if found := COLLECTIVE.search(line):
            return Counter([Message(found[2], sum(size for _, size in array_sizes(found[1])), ())])
        inner = [of(called) for called in CALLED.findall(line)]
        if branches := re.search(r"branch_computations=\{(.*?)\}", line):  # the one that sends most
            inner.append(max((of(one.strip(" %")) for one in branches[1].split(",")), key=volume))
        total: Counter[Message] = sum(inner, Counter())
        if " while(" not in line or not total:
            return total
        if trips := TRIPS.search(line):
            return Counter({message: int(trips[1]) * times for message, times in total.items()})
        loop = loop_name(line, total)
        named = ((Message(one.kind, one.bytes, (loop, *one.loops)), times) for one, times in total.items())
        return Counter(dict(named))

    return of(entry)


def volume(messages: Counter[Message]) -> int:
    return sum(message.bytes * times for message, times in messages.items())


def loop_name(line: str, messages: Counter[Message]) -> str:
    """Which of the step's loops this is, by where it stands and what it sends. (A loop around a factorisation that is
    shared out, which passes once, counts as `iterations`.)"""
    if "/cond/" in line:
        return "search"
    return "landmarks" if any(message.kind == "all-gather" for message in messages) else "iterations"


def sent(messages: Counter[Message], devices: int, passes: dict[str, float]) -> tuple[float, float]:
    """Bytes that each device sends, and rounds that wait for each other: the model of `dngd.solver.messages`."""
    share, steps = (devices - 1) / devices, math.ceil(math.log2(devices))
    costs = {"all-reduce": (2 * share, 2 * steps), "all-gather": (share, steps), "collective-permute": (1, 1)}
    total = rounds = 0.0
    for message, times in messages.items():
        times *= math.prod(passes[loop] for loop in message.loops)
        weight, waits = costs[message.kind]
        total += times * weight * message.bytes
        rounds += times * waits
    return total, rounds
