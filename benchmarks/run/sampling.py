"""Which questions of a file a run uses."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from heapq import nsmallest

from meta_agent_rag.datasets.dataset import Question
from meta_agent_rag.errors import InputError

_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_SHARD = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


def draw(questions: Iterable[Question], n: int, seed: int) -> tuple[Question, ...]:
    """Draw n questions without replacement and return them in file order; all of them if n is larger.

    Only n of them are in memory at a time.

    The n lowest of SHA-256(seed, id) are taken: the draw depends neither on a library's random numbers nor on
    the order of the file, and a smaller draw with the same seed is contained in a larger one.

    Raises `InputError` for n below 1.
    """
    if n < 1:
        raise InputError(f"--n must be at least 1, not {n!r}.")

    def rank(placed: tuple[int, Question]) -> bytes:
        return hashlib.sha256(f"{seed}\0{placed[1].id}".encode()).digest()

    lowest = nsmallest(n, enumerate(questions), key=rank)
    return tuple(question for _, question in sorted(lowest, key=lambda placed: placed[0]))


def by_position(questions: Iterable[Question], positions: str) -> tuple[Question, ...]:
    """Take the questions from A to B, both included, counted from 1, for `positions` = "A-B".

    Raises `InputError` if the range is invalid.
    """
    match = _RANGE.fullmatch(positions.strip())
    if match is None:
        raise InputError(f"Write the range as A-B, for instance 1-100, not {positions!r}.")
    first, last = int(match[1]), int(match[2])
    if first < 1:
        raise InputError(f"Positions count from 1; {positions!r} starts at {first}.")
    if last < first:
        raise InputError(f"The range {positions!r} ends before it starts; write {last}-{first}.")
    count, taken = 0, []
    for count, question in enumerate(questions, start=1):
        if first <= count <= last:
            taken.append(question)
    if last > count:
        raise InputError(f"The range {positions!r} goes beyond the {count} questions of the file.")
    return tuple(taken)


def by_id(questions: Iterable[Question], ids: Sequence[str]) -> tuple[Question, ...]:
    """Take the questions with these ids, in file order. Raises `InputError` that names the first unknown one."""
    count, wanted, taken = 0, frozenset(ids), []
    for question in questions:
        count += 1
        if question.id in wanted:
            taken.append(question)
    known = {question.id for question in taken}
    for id_ in ids:
        if id_ not in known:
            raise InputError(f"No question {id_!r} among the {count} of the file; check --sample-id.")
    return tuple(taken)


def shard_numbers(shard: str) -> tuple[int, int]:
    """I and N of a shard "I/N"; raises `InputError` if it is invalid."""
    match = _SHARD.fullmatch(shard.strip())
    if match is None:
        raise InputError(f"Write the shard as I/N, for instance 1/4, not {shard!r}.")
    number, count = int(match[1]), int(match[2])
    if not 1 <= number <= count:
        raise InputError(f"The shard {shard!r} does not exist; I goes from 1 to N.")
    return number, count


def sharded(questions: Sequence[Question], shard: str) -> tuple[Question, ...]:
    """Every N-th question, starting with the I-th, so that shards are similar even if the file is sorted.

    Raises `InputError` if there are fewer questions than shards: a run with an empty one could not be merged.
    """
    number, count = shard_numbers(shard)
    if count > len(questions):
        raise InputError(f"The shard {shard!r} is one of too many: there are only {len(questions)} questions.")
    return tuple(questions[number - 1 :: count])


def sample_digest(ids: Sequence[str]) -> str:
    """SHA-256 over the ids of a sample, independent of their order."""
    return hashlib.sha256("\n".join(sorted(ids)).encode("utf-8", "surrogatepass")).hexdigest()
