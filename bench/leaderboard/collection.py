"""Collects the stored receipts of all systems into the results of the page."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.dataset import DatasetConversation, hash_dataset
from bench.leaderboard.public_sets import LoadedDataset, Split
from bench.leaderboard.receipts import ReceiptFile, ReceiptHeader, ReceiptStore, select_receipts
from bench.leaderboard.summary import MeasuredRows, SplitResults, summarize_split
from bench.leaderboard.systems import SYSTEM_TITLES

SPLITS: tuple[Split, ...] = ("held out", "tuned on", "unknown")


@dataclass(frozen=True, slots=True)
class CollectedResults:
    """The results by split, and what the headers of the receipts say about the measurements."""

    results: list[SplitResults]
    about: Mapping[str, str]
    titles: frozenset[str]


def collect_results(store: ReceiptStore, datasets: Sequence[LoadedDataset], budgets: Sequence[int]) -> CollectedResults:
    """Return the results of all systems that are measured on every selected conversation of a split.

    Raises InputError for receipts that contradict the data.
    """
    results, headers = list[SplitResults](), list[ReceiptHeader]()
    for loaded in datasets:
        for split in SPLITS:
            own = [one for one in loaded.conversations if loaded.dataset.find_split(one.name) == split]
            measured = [*_iter_measured(store, loaded.dataset.folder, own, budgets)] if own else []
            if measured:
                results.append(summarize_split(loaded.dataset, split, own, measured))
                headers += [header for one in measured for header in one.headers]
    titles = frozenset(SYSTEM_TITLES[header.system] for header in headers)
    return CollectedResults(results, _describe_headers(headers), titles)


def _iter_measured(
    store: ReceiptStore, dataset: str, conversations: Sequence[DatasetConversation], budgets: Sequence[int]
) -> Iterator[MeasuredRows]:
    """Yield the receipts of each system that has valid ones for all conversations."""
    for system, title in SYSTEM_TITLES.items():
        files = [_read_valid(store, dataset, system, one) for one in conversations]
        chosen = [
            select_receipts(file, conversation, budgets) if file else None
            for file, conversation in zip(files, conversations, strict=True)
        ]
        if all(chosen):
            receipts = [receipt for own in chosen for receipt in own or ()]
            yield MeasuredRows(system, title, receipts, [file.header for file in files if file])


def _read_valid(
    store: ReceiptStore, dataset: str, system: str, conversation: DatasetConversation
) -> ReceiptFile | None:
    """Return the stored receipts; None if there are none, or they are those of other data."""
    file = store.read(dataset, system, conversation)
    return file if file and file.header.fingerprint["data"] == hash_dataset([conversation]) else None


def _describe_headers(headers: Sequence[ReceiptHeader]) -> dict[str, str]:
    """Return versions, machines and dates of the measurements, and a hash of the data."""
    data = {(one.dataset, one.conversation): one.fingerprint["data"] for one in headers}
    digest = hashlib.sha256("".join(data[key] for key in sorted(data)).encode()).hexdigest()
    days = sorted({one.measured_at[:10] for one in headers})
    systems = {
        f"{SYSTEM_TITLES[key]}": _join(
            f"{one.fingerprint['system']}{f' ({one.description})' if one.description else ''}"
            for one in headers
            if one.system == key
        )
        for key in SYSTEM_TITLES
    }
    return {
        "measured": " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
        "commit": _join(one.commit for one in headers if one.system == "newton"),
        "machine": _join(", ".join(f"{name} {value}" for name, value in one.machine.items()) for one in headers),
        "embedding model": _join(one.fingerprint["embedding"] for one in headers),
        "hash of the data": digest,
        **{title: text for title, text in systems.items() if text},
    }


def _join(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(values))
