"""Windows of a question and a part of its context, and where answers lie in them."""

import copy

import numpy as np

from ..checks import check_int, check_not_empty
from ..tokenizers.text_encoder import TEXTS_AT_ONCE
from ..tokenizers.words import with_marks
from .collate import Rows
from .ragged import Ragged
from .windows import Windows, cut_windows

# The outputs of a model that answers questions.
OUTPUTS = ("start_logits", "end_logits")
# The logit of a column that is padding.
PADDING_LOGIT = -1e9


class QuestionWindows(Rows):
    """Pairs of a question and a window over its context, for contexts of any length.

    A context that is longer than the room left by its question is cut into overlapping windows, one
    every `stride` tokens, as in Google's run_squad.py. A context of several questions is tokenized
    once.

    Args:
        packer: a `TextPacker`; its `max_length` is that of a window.
        questions: list of str.
        contexts: list of str, as many.
        stride: int, tokens between the starts of two windows.
        max_question_length: int, how many tokens a question keeps, from its start. It keeps at most
            half of the room for text, so that the context has the other half.

    Attributes:
        contexts: list of str, one per question.
        offsets: for each question an int array `(num_tokens, 2)`: the first character of each token
            of the context, and the character after its last.
        windows: `Windows`, whose `documents` are the questions; those of a question lie one after
            the other.
        first_columns: int64 `(num_windows,)`, the column of the window's first context token.
        lengths: int64 `(num_windows,)`, packed lengths.
        without_text: dict from the indices of questions that cannot be answered to `("question",
            text)` or `("context", text)`, the text that is blank or of which the tokenizer leaves
            nothing.

    Raises:
        ValueError: there is no question, or `max_length` is too small.
    """

    def __init__(self, packer, questions, contexts, *, stride, max_question_length):
        room, layout = packer.room(is_pair=True), packer.tokenizer.layout
        least = layout.num_special(is_pair=True) + 2
        advice = "There must be room for a question and a context."
        check_int("max_length", packer.max_length, least, advice=advice)
        check_not_empty(questions, "At least one question is needed")
        self.contexts = contexts
        self._packer, tokenizer = packer, packer.tokenizer
        question_ids = Ragged.from_flat(*tokenizer.flat_ids(questions))
        kept_lengths = np.minimum(question_ids.lengths, min(max_question_length, room // 2))
        self._question_ids = Ragged(question_ids.values, question_ids.starts, kept_lengths)

        places = {text: place for place, text in enumerate(dict.fromkeys(contexts))}
        text_of = np.array([places[text] for text in contexts], np.int64)
        tokens, characters = _tokenize_with_offsets(tokenizer, list(places))
        offsets = np.split(characters, tokens.starts[1:])
        self.offsets = [offsets[place] for place in text_of]
        lengths = tokens.lengths[text_of]
        self.without_text = {}
        inputs = ("context", contexts, lengths), ("question", questions, question_ids.lengths)
        for name, texts, counts in inputs:
            for index, (text, count) in enumerate(zip(texts, counts, strict=True)):
                if not count or text.isspace():
                    self.without_text[index] = name, text
        self.windows = cut_windows(lengths, room - kept_lengths, stride)
        self._window_ids = tokens.take(text_of).windows(self.windows)
        columns = len(layout.before) + kept_lengths + len(layout.between)
        self.first_columns = columns[self.windows.documents]
        lengths = self.first_columns + self.windows.lengths + len(layout.after)
        super().__init__(lengths, packer.max_length)

    def check_has_text(self):
        """Raises `ValueError` if a question or a context has no text."""
        for index, (name, text) in sorted(self.without_text.items())[:1]:
            raise ValueError(
                f"Every {name} needs text. Received at the index {index}: {text[:60]!r}, which is "
                "blank, or the tokenizer leaves nothing of it. Leave such examples out."
            )

    def take(self, rows):
        """Returns some of the windows, which are not labelled yet; `rows` int64 `(size,)`."""
        taken = copy.copy(self)
        taken.windows = Windows(*(column[rows] for column in self.windows))
        taken._window_ids = self._window_ids.take(rows)
        taken.first_columns, taken.lengths = self.first_columns[rows], self.lengths[rows]
        return taken

    def inputs(self, indices, length):
        questions = self._question_ids.take(self.windows.documents[indices])
        return self._packer.pack(questions, self._window_ids.take(indices), length=length)

    def collect(self, batches):
        """Returns a dict `start_logits`, `end_logits`: float32 `(num_windows, longest)`."""
        longest = int(self.lengths.max())
        logits = np.full((len(OUTPUTS), len(self), longest), PADDING_LOGIT, "float32")
        for rows, outputs in batches:
            for part, name in zip(logits, OUTPUTS, strict=True):
                length = min(longest, outputs[name].shape[1])
                part[rows, :length] = outputs[name][:, :length]
        return dict(zip(OUTPUTS, logits, strict=True))

    def tokens_of(self, questions, starts, ends):
        """Returns the tokens that cover spans of characters.

        Args:
            questions: int64 `(size,)`, the questions whose contexts hold the spans.
            starts: int64 `(size,)`, first characters.
            ends: int64 `(size,)`, the characters after the last.

        Returns:
            Two int64 arrays `(size,)`, the first and the last token in the context. For a span that
            covers no token, such as white space, the last token comes before the first.
        """
        first, last = np.zeros((2, len(questions)), np.int64)
        for row, question in enumerate(questions):
            begins_of_tokens, ends_of_tokens = self.offsets[question].T
            first[row] = np.searchsorted(ends_of_tokens, starts[row], "right")
            last[row] = np.searchsorted(begins_of_tokens, ends[row], "left") - 1
        return first, last

    def columns_of(self, first, last):
        """Returns the labels of each window: the first and last column of its question's answer.

        Args:
            first: int64 `(num_questions,)`, the answers' first tokens; -1 for no answer.
            last: int64 `(num_questions,)`, the answers' last tokens.

        Returns:
            Two int32 arrays `(num_windows,)`, start and end. Both are 0, the first column, where
            the window does not hold the whole answer, as in run_squad.py.
        """
        question = self.windows.documents
        first, last = first[question], last[question]
        begin = self.windows.starts
        inside = (first >= begin) & (last < begin + self.windows.lengths)
        shift = self.first_columns - begin
        starts = np.where(inside, first + shift, 0)
        return starts.astype(np.int32), np.where(inside, last + shift, 0).astype(np.int32)


def _tokenize_with_offsets(tokenizer, texts):
    """Returns a `Ragged` of ids, one row per text, and the characters of all tokens.

    These are int64 `(total, 2)`: a token's first character, and the one after its last; marks on
    its last character belong to it, see `with_marks`.
    """
    ids, characters = [], []
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        part = texts[start : start + TEXTS_AT_ONCE]
        encodings = tokenizer.encode(part, special_tokens=False)
        for text, encoding in zip(part, encodings, strict=True):
            ids.append(np.array(encoding.ids, np.int32))
            spans = with_marks(text, encoding.offsets)
            characters.append(np.array(spans, np.int64).reshape(-1, 2))
    lengths = list(map(len, ids))
    return Ragged.from_flat(np.concatenate(ids), lengths), np.concatenate(characters)
