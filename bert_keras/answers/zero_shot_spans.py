"""Entities of any labels (GLiNER): from texts and labels to rows of ids, from logits to entities.

A row is `[CLS] <<ENT>> label <<ENT>> label ... <<SEP>> word word ... [SEP]`. The model returns a
logit for each span of words, up to a width, and each label.

Reference: https://github.com/urchade/GLiNER.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..inputs import PADDING_MASK, SEGMENT_IDS, TOKEN_IDS
from ..preprocessing.collate import Rows, TextPacker
from ..preprocessing.ragged import Ragged
from ..tokenizers.words import join_words
from .answerer import Option
from .classes import THRESHOLD, check_labels, check_threshold, sigmoid
from .tagged_texts import TagAnswerer, tagged_text

WORD_POSITIONS, LABEL_POSITIONS = "word_positions", "label_positions"
# GLiNER's words. In scripts without spaces between words, a word is a run of characters.
_WORD = re.compile(r"\w+(?:[-_]\w+)*|\S")


class PlacedText(NamedTuple):
    """A text, its words, and their tokens; a word without tokens is left out.

    Attributes:
        text: str.
        spans: list of `(start, end)`, the characters of each word.
        ids: list of int, the tokens of all words.
        starts: list of int, the first token of each word, then `len(ids)`.
    """

    text: str
    spans: list[tuple[int, int]]
    ids: list[int]
    starts: list[int]


class SpanPacker:
    """Makes rows of texts and labels.

    Args:
        settings: see `ZeroShotTagAnswerer`.
        packer: a `TextPacker`, for its tokenizer, `max_length` and names of inputs.
    """

    def __init__(self, settings: Mapping[str, Any], packer: TextPacker) -> None:
        self.tokenizer, self.max_length = packer.tokenizer, packer.max_length
        self.input_names = (*packer.input_names, WORD_POSITIONS, LABEL_POSITIONS)
        self.before, self.after = self.tokenizer.layout.before, self.tokenizer.layout.after
        self.label_id, self.separator_id = settings["label_id"], settings["separator_id"]
        self.max_words, self.max_width = settings["max_words"], settings["max_width"]
        self.stride, self.num_windows = settings["stride"], settings["num_windows"]

    def place(self, texts: Iterable[str | Sequence[str]]) -> list[PlacedText]:
        """Returns texts, or lists of words, with the places and the tokens of their words."""
        placed = [
            (text, [match.span() for match in _WORD.finditer(text)])
            if isinstance(text, str)
            else join_words(text)
            for text in texts
        ]
        # Words are tokenized one by one.
        words = [[text[start:end] for start, end in spans] for text, spans in placed]
        encodings = self.tokenizer.encode_batch(words, are_words=True)
        found = []
        for (text, spans), encoding in zip(placed, encodings, strict=True):
            numbers = np.array(encoding.word_ids, int)
            starts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
            spans = [spans[numbers[start]] for start in starts]
            found.append(PlacedText(text, spans, encoding.ids, [*starts, len(encoding.ids)]))
        return found

    def label_ids(self, labels: Sequence[str]) -> list[list[int]]:
        """Returns the tokens of each label.

        Raises:
            ValueError: a label has no tokens, or contains the marker of labels.
        """
        encodings = self.tokenizer.encode_batch([[label] for label in labels], are_words=True)
        for label, encoding in zip(labels, encodings, strict=True):
            if not encoding.ids or {self.label_id, self.separator_id} & {*encoding.ids}:
                raise ValueError(
                    "A label must have tokens, and none of the markers that stand between labels "
                    f"and words. Received: {label!r}. Name it by words."
                )
        return [encoding.ids for encoding in encodings]

    def prompt(self, label_ids: Iterable[Sequence[int]]) -> tuple[list[int], list[int]]:
        """Returns the tokens before a text's words, and where the markers of labels are."""
        ids, positions = list(self.before), []
        for label in label_ids:
            positions.append(len(ids))
            ids += [self.label_id, *label]
        return [*ids, self.separator_id], positions

    def room(self, prompt: Sequence[int]) -> int:
        """Returns how many tokens of words fit after a prompt.

        Raises:
            ValueError: the labels leave less than a quarter of the row.
        """
        room = self.max_length - len(prompt) - len(self.after)
        if room < self.max_length // 4:
            raise ValueError(
                "Labels must leave a quarter of a row for the text. Received: labels of "
                f"{len(prompt)} tokens where max_length={self.max_length}. Ask for fewer labels at "
                "a time, or raise `max_length`."
            )
        return room

    def windows(self, placed: PlacedText, room: int) -> list[tuple[int, int]]:
        """Returns the first word of each window over a text, and the word after its last."""
        starts, count = placed.starts, len(placed.spans)
        windows, first = [], 0
        while first < count and len(windows) != self.num_windows:
            end = int(np.searchsorted(starts, starts[first] + room, side="right")) - 1
            # A word that does not fit alone is cut.
            end = max(first + 1, min(end, first + self.max_words))
            windows.append((first, end))
            if end == count:
                break
            size = end - first
            first += min(size, self.stride or max(1, size // 2))
        return windows

    def row(
        self, placed: PlacedText, window: tuple[int, int], prompt: tuple[list[int], list[int]]
    ) -> dict[str, list[int]]:
        """Returns the inputs of a window, see `windows` and `prompt`."""
        (first, end), (before, positions) = window, prompt
        starts = placed.starts
        offset = len(before) - starts[first]
        last = min(starts[end], starts[first] + self.room(before))
        return {
            "token_ids": [*before, *placed.ids[starts[first] : last], *self.after],
            "word_positions": [start + offset for start in starts[first:end]],
            "label_positions": positions,
        }

    def pack(
        self,
        rows: Sequence[dict[str, list[int]]],
        length: int,
        num_words: int,
        num_labels: int | None = None,
    ) -> dict[str, NDArray[np.int32]]:
        """Returns the inputs of a batch, padded.

        Args:
            rows: see `row`.
            length, num_words: int, what rows are padded to.
            num_labels: int, or `None` for the most of these rows.
        """
        widths = {TOKEN_IDS: length, WORD_POSITIONS: num_words, LABEL_POSITIONS: num_labels}
        columns = {name: Ragged.from_rows([row[name] for row in rows]) for name in widths}
        padding = {TOKEN_IDS: self.tokenizer.pad_token_id}
        inputs = {
            name: column.to_dense(widths[name], padding.get(name, 0))
            for name, column in columns.items()
        }
        is_token = np.arange(length) < columns[TOKEN_IDS].lengths[:, None]
        inputs |= {PADDING_MASK: is_token.astype("int32"), SEGMENT_IDS: 0 * inputs[TOKEN_IDS]}
        return {name: inputs[name] for name in self.input_names}


class SpanRows(Rows):
    """Windows over texts, each after the same labels.

    Args:
        packer: `SpanPacker`.
        texts: list of str or of lists of words.
        labels: list of str, what the model reads for each label.

    Attributes:
        placed: list of `PlacedText`.
        places: list of the index of a text and the number of a window's first word, for each row.
        is_counted: list of bool `(num_words, max_width)` for each row, see `counted_spans`.
    """

    def __init__(
        self, packer: SpanPacker, texts: Iterable[str | Sequence[str]], labels: Sequence[str]
    ) -> None:
        self.packer, self.num_labels = packer, len(labels)
        prompt = packer.prompt(packer.label_ids(labels))
        room = packer.room(prompt[0])
        self.placed, self.places, self.is_counted = packer.place(texts), [], []
        self.row_inputs = []
        for index, placed in enumerate(self.placed):
            windows = packer.windows(placed, room)
            self.is_counted += counted_spans(windows, packer.max_width)
            for window in windows:
                self.places.append((index, window[0]))
                self.row_inputs.append(packer.row(placed, window, prompt))
        super().__init__([len(row[TOKEN_IDS]) for row in self.row_inputs])
        self.num_words = WordCounts(self.lengths, list(map(len, self.is_counted)))

    def inputs(self, indices, length):
        rows = [self.row_inputs[index] for index in indices]
        return self.packer.pack(rows, length, self.num_words.of(length))


class WordCounts:
    """The number of words that batches of each length are padded to, so that few are compiled.

    Args:
        lengths: int `(num_rows,)`, tokens of rows.
        num_words: int `(num_rows,)`.
    """

    def __init__(self, lengths: ArrayLike, num_words: ArrayLike) -> None:
        order = np.argsort(lengths, kind="stable")
        self.lengths = np.asarray(lengths)[order]
        self.most = np.maximum.accumulate(np.asarray(num_words, int)[order])

    def of(self, length: int) -> int:
        """Returns a multiple of 8, at least the words of each row of up to this length."""
        most = self.most[np.searchsorted(self.lengths, length, side="right") - 1]
        return -(-int(most) // 8) * 8


class ZeroShotTagAnswerer(TagAnswerer):
    """The entities in texts that labels describe.

    Its settings are those of `ZeroShotTagger`, and the ids of the markers before each label and
    before the words, `label_id` and `separator_id`.
    """

    setting_names = ("max_width", "max_words", "num_windows", "stride")
    options = (
        Option("labels", list, (), "Labels of the entities to find.", is_checked=False),
        THRESHOLD._replace(about="The probability above which an entity counts."),
        Option("flat_ner", bool, True, "Whether entities must not overlap."),
        Option("multi_label", bool, False, "Whether the same words may have several labels."),
    )
    about = "Find entities of any labels in each text."
    example = '"Ada Lovelace lived in London." --labels person,city'
    does = "finds entities of any labels"
    call = "tag(['A text.'], ['person', 'city'])"

    def __init__(self, settings, packer, **options):
        super().__init__(settings, packer, **options)
        # What the model reads for each label: the label itself, or a description of it.
        columns = self.labels, self.labels
        if isinstance(self.labels, Mapping):
            columns = [*self.labels], [*self.labels.values()]
        columns = [check_labels(column, may_repeat=True) for column in columns]
        self.prompts = dict(zip(*columns, strict=True))
        self.threshold = check_threshold(self.threshold, list(self.prompts))

    @classmethod
    def sample(cls, packer, text):
        return (text,), {"labels": ("a",)}

    def encode(self, texts):
        packer = SpanPacker(self.settings, self.packer)
        return SpanRows(packer, texts, list(self.prompts.values()))

    def answer(self, rows, batches, texts):
        found = [[] for _ in texts]
        for indices, logits in batches:
            for index, of_row in zip(indices, logits, strict=True):
                text, first = rows.places[index]
                logits = of_row[: len(rows.is_counted[index])]
                found[text] += candidates(logits, rows.is_counted[index], first, self.threshold)
        return [
            tagged(
                placed,
                list(self.prompts),
                choose_spans(sorted(spans), self.flat_ner, self.multi_label),
            )
            for placed, spans in zip(rows.placed, found, strict=True)
        ]


def counted_spans(windows: Sequence[tuple[int, int]], max_width: int) -> list[NDArray[np.bool_]]:
    """Returns for each window of a text which spans are read there.

    Each span is, in the one window where it has the most context.

    Args:
        windows: list of the first word of a window and the word after its last.
        max_width: int.

    Returns:
        A list of bool `(num_words, max_width)`.
    """
    # For each span of the text, the most context so far, and the number of the window with it.
    num_words = max((end for _, end in windows), default=0)
    most, best = np.full((2, num_words, max_width), -1)
    for number, (first, end) in enumerate(windows):
        starts = np.arange(end - first)[:, None]
        after = end - first - 1 - starts - np.arange(max_width)
        context = np.where(after >= 0, np.minimum(starts, after), -1)
        best[first:end][context > most[first:end]] = number  # The first of equals counts.
        np.maximum(most[first:end], context, out=most[first:end])
    return [best[first:end] == number for number, (first, end) in enumerate(windows)]


def candidates(
    logits: NDArray[Any],
    is_counted: NDArray[np.bool_],
    first: int,
    threshold: float | NDArray[np.float64],
) -> list[tuple[int, int, int, float]]:
    """Returns the spans of a window whose probability is above the threshold.

    Args:
        logits: float `(num_words, max_width, num_labels)`.
        is_counted: bool `(num_words, max_width)`, see `counted_spans`.
        first: int, the number of the window's first word in its text.
        threshold: float64 `()` or `(num_labels,)`.

    Returns:
        List of the first word, the last word, the number of the label, and the probability, by
        first word, width and label.
    """
    probabilities = sigmoid(np.asarray(logits, "float64"))
    chosen = (probabilities > threshold) & is_counted[..., None]
    starts, widths, labels = np.nonzero(chosen)
    columns = first + starts, first + starts + widths, labels, probabilities[chosen]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def choose_spans(
    found: Sequence[tuple[int, int, int, float]], flat_ner: bool = True, multi_label: bool = False
) -> list[tuple[int, int, int, float]]:
    """Returns the spans that do not clash with a likelier one, the likeliest first.

    Two labels of one span clash unless `multi_label`. Other spans clash where they share a word,
    or with `flat_ner=False` where they do and neither contains the other.

    Args:
        found: list of `(first word, last word, label, probability)`.
        flat_ner: bool.
        multi_label: bool.
    """
    kept, spans, taken = [], set(), set()
    for candidate in sorted(found, key=lambda x: -x[3]):  # Equals stay in order.
        first, last = candidate[:2]
        if (first, last) in spans:
            clashes = not multi_label
        elif flat_ner:
            clashes = not taken.isdisjoint(range(first, last + 1))
        else:
            clashes = any(a < first <= b < last or first < a <= last < b for a, b in spans)
        if not clashes:
            kept.append(candidate)
            spans.add((first, last))
            taken.update(range(first, last + 1))
    return kept


def tagged(
    placed: PlacedText, labels: Sequence[str], chosen: Sequence[tuple[int, int, int, float]]
) -> dict[str, Any]:
    """Returns the answer for a text, whose words have IOB2 tags, see `tagged_text`.

    Args:
        placed: `PlacedText`.
        labels: sequence of str.
        chosen: spans, see `choose_spans`. Where some overlap, words have the tags of the likeliest.
    """
    tags = ["O"] * len(placed.spans)
    for first, last, label, _ in chosen:
        if all(tag == "O" for tag in tags[first : last + 1]):
            inside = [f"I-{labels[label]}"] * (last - first)
            tags[first : last + 1] = [f"B-{labels[label]}", *inside]
    found = sorted(chosen, key=lambda x: x[0])
    entities = [(labels[label], first, last + 1, score) for first, last, label, score in found]
    return tagged_text(placed.text, placed.spans, tags, entities)
