r"""Answers of an exported task without Keras: onnxruntime, tokenizers and numpy are all it needs.

`task.export("served", format="onnx")` writes a folder with a copy of this file, which answers where
this package is not installed, from the shell too:

    python served/runtime.py "What a film!" "Never again."

What a folder holds:

| file | what |
|---|---|
| `model.onnx` | from `token_ids`, `padding_mask`, `segment_ids` to logits, spans or vectors |
| `tokenizer.json` | from texts to ids, as the `tokenizers` library reads it |
| `config.json` | special tokens around texts, lengths, labels, and other settings of the task |
| `runtime.py` | this file |
"""

from __future__ import annotations

import functools
import json
import os
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import tokenizers
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bert_keras.types import Choice, IsNext, JudgedToken, OneText, Path, TaggedText, Texts

# Raised where a `config.json` means something else than before.
FORMAT = 1
ANSWERS = ("classify", "tag", "answer", "choose", "fill_mask", "embed", "is_next", "is_replaced")
# What is divided by, or taken for a length, where the config has it.
_SIZES = ("max_length", "stride", "num_windows", "max_question_length", "max_answer_length")
# Logits that a call of a language model returns at most: 128 MiB of float32.
_LOGITS_AT_ONCE = 2**25
# Other names of the prefixes I, E and S of tags.
_SYNONYMS = {"M": "I", "L": "E", "U": "S"}


def load(folder: Path, providers: Iterable[str] = ("CPUExecutionProvider",)) -> ExportedTask:
    """Returns the exported task of a folder.

    Args:
        folder: str or path, which a task's `export(folder, format="onnx")` wrote.
        providers: names of what is to compute, see `onnxruntime.InferenceSession`.

    Returns:
        An `ExportedTask`.

    Raises:
        ImportError: onnxruntime is not installed.
        ValueError: the folder is of another kind, or of another version.

    Example:
    ```python
    from bert_keras.export import runtime

    classifier = runtime.load("served")
    classifier.classify(["What a film!", "Never again."])
    ```
    """
    return ExportedTask(folder, providers)


def is_exported(folder: Path) -> bool:
    """Whether a folder is one that an export wrote: others have files of the same names."""
    return "format" in _config_of(folder)


def _config_of(folder):
    """Returns what config.json says beside a program, `{}` where there is nothing that it could."""
    try:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    is_dict = isinstance(config, dict) and os.path.isfile(os.path.join(folder, "model.onnx"))
    return config if is_dict else {}


def _check_config(config, folder):
    """Raises `ValueError` for a config of another kind or version, or that no export wrote."""
    if "format" not in config:
        raise ValueError(
            "A folder that `export(folder, format='onnx')` wrote holds model.onnx and config.json. "
            f"Received: {folder}."
        )
    if config["format"] != FORMAT:
        raise ValueError(
            f"config.json must have the format {FORMAT}. Received: format {config['format']!r} of "
            f"version {config.get('version')} in {folder}. Export it again, or load it by the "
            "runtime.py in that folder."
        )
    answers, sizes = config.get("answers"), {name: config.get(name) for name in _SIZES}
    is_known = isinstance(answers, list) and answers and all(x in ANSWERS for x in answers)
    wrong = {k: x for k, x in sizes.items() if x is not None and (type(x) is not int or x < 1)}
    if wrong or not is_known:
        raise ValueError(
            f"config.json must say `answers`, of {ANSWERS}, and sizes from 1 on. Received: "
            f"answers={answers!r}, {wrong} in {folder}. Export it again."
        )


def answers_of(task: Any) -> list[str]:
    """Returns by which of `ANSWERS` a task answers, a list of str."""
    if isinstance(task, ExportedTask):
        return task.answers
    # A method that refuses what other libraries call it has another name itself.
    return [name for name in ANSWERS if getattr(getattr(task, name, None), "__name__", "") == name]


class ExportedTask:
    """Answers as the task does that was exported, by the methods that `answers` names.

    Attributes:
        answers: list of str, out of `ANSWERS`.
        config: dict, what config.json says.

    Args:
        folder, providers: see `load`.
    """

    def __init__(self, folder: Path, providers: Iterable[str] = ("CPUExecutionProvider",)) -> None:
        import onnxruntime

        self.config = _config_of(folder)
        _check_config(self.config, folder)
        self.answers = self.config["answers"]
        paths = [os.path.join(folder, name) for name in ("tokenizer.json", "model.onnx")]
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(paths[0])
            options = onnxruntime.SessionOptions()
            # As everywhere else on a CPU; by itself it takes all cores.
            threads = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
            options.intra_op_num_threads = int(threads) if threads.isdigit() else 0
            self._session = onnxruntime.InferenceSession(paths[1], options, list(providers))
        except Exception as error:  # Both libraries raise what has no class of its own.
            raise ValueError(f"{folder} cannot be read ({error}). Export it again.") from error
        self._input_names = [value.name for value in self._session.get_inputs()]
        self._num_axes = len(self._session.get_inputs()[0].shape)
        self._output_names = [value.name for value in self._session.get_outputs()]

    # Answers: texts are a str, or a list, tuple or column of str; answers are the task's.

    @overload
    def classify(
        self,
        texts: OneText,
        batch_size: int = 32,
        threshold: float | Sequence[float] | Mapping[str, float] = 0.5,
    ) -> dict[str, Any]: ...
    @overload
    def classify(
        self,
        texts: Texts,
        batch_size: int = 32,
        threshold: float | Sequence[float] | Mapping[str, float] = 0.5,
    ) -> list[dict[str, Any]]: ...
    def classify(self, texts, batch_size=32, threshold=0.5):
        """Returns classes, labels or scores, see `bert_keras.TextClassifier.classify`."""
        self._check("classify", batch_size=batch_size)
        is_pair = isinstance(texts, tuple) and len(texts) == 2
        if isinstance(texts, str):
            return self.classify([texts], batch_size, threshold)[0]
        if is_pair and all(isinstance(text, str) for text in texts):
            return self.classify(tuple([text] for text in texts), batch_size, threshold)[0]
        columns = [self._ids(column) for column in (texts if is_pair else (texts,))]
        if "num_windows" in self.config:
            if is_pair:
                raise ValueError("Documents are single texts. Received: pairs.")
            windows = map(self._windows_of_document, *columns)
            logits = [self._run(rows)["logits"][0] for rows in windows]
        else:
            rows = [self._row(*self._cut(*ids)) for ids in zip(*columns, strict=True)]
            logits = [outputs["logits"] for outputs in self._outputs(rows, batch_size)]
        return [self._class_of(row, threshold) for row in logits]

    @overload
    def tag(self, sentences: str, batch_size: int = 32) -> TaggedText: ...
    @overload
    def tag(self, sentences: Texts, batch_size: int = 32) -> list[TaggedText]: ...
    def tag(self, sentences, batch_size=32):
        """Returns words, tags and entities, see `bert_keras.TokenClassifier.tag`."""
        self._check("tag", batch_size=batch_size)
        if isinstance(sentences, str):
            return self.tag([sentences], batch_size)[0]
        placed = [self._placed(sentence) for sentence in _column(sentences)]
        words = [[text[start:end] for start, end in spans] for text, spans in placed]
        logits = self._word_logits(words, batch_size)
        return [
            self._tagged(*place, *found)
            for place, *found in zip(placed, words, logits, strict=True)
        ]

    def answer(
        self, question: str | Texts, context: str | Texts, top_k: int = 1, batch_size: int = 32
    ) -> Any:
        """Returns spans of contexts, see `bert_keras.QuestionAnswering.answer`."""
        self._check("answer", top_k=top_k, batch_size=batch_size)
        if isinstance(question, str):
            return self.answer([question], context, top_k, batch_size)[0]
        questions = _column(question)
        contexts = [context] * len(questions) if isinstance(context, str) else _column(context)
        return [
            self._spans(*texts, top_k, batch_size)
            for texts in zip(questions, contexts, strict=True)
        ]

    @overload
    def choose(self, context: str, choices: Texts, batch_size: int = 32) -> Choice: ...
    @overload
    def choose(
        self, context: Texts, choices: Iterable[Texts], batch_size: int = 32
    ) -> list[Choice]: ...
    def choose(self, context, choices, batch_size=32):
        """Returns the choices that fit best, see `bert_keras.MultipleChoice.choose`."""
        self._check("choose", batch_size=batch_size)
        if isinstance(context, str):
            return self.choose([context], [choices], batch_size)[0]
        choices, rows = _column(choices), []
        for first, given in zip(self._ids(context), choices, strict=True):
            if not len(given):
                raise ValueError("Each context needs at least one choice. Received: none.")
            rows += [self._row(*self._cut(first, second)) for second in self._ids(given)]
        logits = iter([outputs["logits"][0] for outputs in self._outputs(rows, batch_size)])
        answers = []
        for given in choices:
            shares = softmax(np.array([next(logits) for _ in given]))
            best = int(shares.argmax())
            answer = given[best], best, shares.tolist()
            answers.append(dict(zip(("choice", "index", "probabilities"), answer, strict=True)))
        return answers

    def embed(self, texts: str | Texts, batch_size: int = 32) -> NDArray[np.float32]:
        """Returns the vectors of texts, see `bert_keras.TextEmbedder.embed`."""
        self._check("embed", batch_size=batch_size)
        if isinstance(texts, str):
            return self.embed([texts], batch_size)[0]
        rows = [self._row(self._cut(ids)[0]) for ids in self._ids(texts)]
        vectors = [outputs["logits"] for outputs in self._outputs(rows, batch_size)]
        return np.array(vectors, "float32").reshape(
            len(rows), self._session.get_outputs()[0].shape[-1]
        )

    @overload
    def fill_mask(
        self, text: str, top_k: int = 5, batch_size: int = 32
    ) -> list[list[tuple[str, float]]]: ...
    @overload
    def fill_mask(
        self, text: Texts, top_k: int = 5, batch_size: int = 32
    ) -> list[list[list[tuple[str, float]]]]: ...
    def fill_mask(self, text, top_k=5, batch_size=32):
        """Returns the likeliest tokens, see `bert_keras.MaskedLM.fill_mask`."""
        self._check("fill_mask", top_k=top_k, batch_size=batch_size)
        if isinstance(text, str):
            return self.fill_mask([text], top_k, batch_size)[0]
        mask, vocabulary_size = self.config["mask_token_id"], self._tokenizer.get_vocab_size()
        rows = []
        for index, ids in enumerate(self._ids(text)):
            rows.append(self._row(*self._cut(ids)))
            found = rows[-1][0].count(mask)
            if found < max(1, ids.count(mask)):
                raise ValueError(
                    f"Each text needs a {self.mask_token}, where texts are not "
                    f"cut. Received: {found} within the first {self.config['max_length']} tokens "
                    f"of the text at the index {index}."
                )
        longest = max((len(ids) for ids, _ in rows), default=1)
        at_once = max(1, _LOGITS_AT_ONCE // (longest * vocabulary_size))
        answers = []
        for start in range(0, len(rows), at_once):
            part = rows[start : start + at_once]
            for (ids, _), outputs in zip(part, self._outputs(part, batch_size), strict=True):
                logits = outputs.get("masked_lm", outputs.get("logits"))
                places = [place for place, id in enumerate(ids) if id == mask]
                answers.append([self._likeliest(logits[place], top_k) for place in places])
        return answers

    @overload
    def is_next(self, first: str, second: str, batch_size: int = 32) -> IsNext: ...
    @overload
    def is_next(self, first: Texts, second: Texts, batch_size: int = 32) -> list[IsNext]: ...
    def is_next(self, first, second, batch_size=32):
        """Returns whether texts follow others, see `bert_keras.NextSentencePrediction.is_next`."""
        self._check("is_next", batch_size=batch_size)
        if isinstance(first, str):
            return self.is_next([first], [second], batch_size)[0]
        pairs = zip(self._ids(first), self._ids(second), strict=True)
        answers = []
        for outputs in self._outputs([self._row(*self._cut(*ids)) for ids in pairs], batch_size):
            logits = outputs.get("next_sentence", outputs.get("logits"))
            chance = float(softmax(logits)[0])
            answers.append({"is_next": chance > 0.5, "probability": chance})
        return answers

    @overload
    def is_replaced(self, text: str, batch_size: int = 32) -> list[JudgedToken]: ...
    @overload
    def is_replaced(self, text: Texts, batch_size: int = 32) -> list[list[JudgedToken]]: ...
    def is_replaced(self, text, batch_size=32):
        """Returns how likely tokens were replaced, see `ReplacedTokenDetector.is_replaced`."""
        self._check("is_replaced", batch_size=batch_size)
        if isinstance(text, str):
            return self.is_replaced([text], batch_size)[0]
        encodings = self._encode(_column(text))
        for index, encoding in enumerate(encodings):
            if len(encoding.ids) > self._room():
                raise ValueError(
                    f"Texts must fit whole: at most {self._room()} tokens. Received: "
                    f"{len(encoding.ids)} tokens at the index {index}. Split it into sentences."
                )
        first, answers = len(self.config["before"]), []
        outputs = self._outputs([self._row(encoding.ids) for encoding in encodings], batch_size)
        for encoding, found in zip(encodings, outputs, strict=True):
            chances = sigmoid(found["logits"])[first : first + len(encoding.ids)].tolist()
            tokens = zip(map(self._readable, encoding.ids), encoding.offsets, chances, strict=True)
            answers.append(
                [
                    {"token": token, "start": start, "end": end, "probability": chance}
                    for token, (start, end), chance in tokens
                ]
            )
        return answers

    @property
    def mask_token(self) -> str | None:
        """The token that `fill_mask` guesses, or `None`."""
        id = self.config["mask_token_id"]
        return None if id is None else self._tokenizer.id_to_token(id)

    def _check(self, answer, **numbers):
        if answer not in self.answers:
            raise ValueError(
                f"This exported {self.config['task']} answers by {' and '.join(self.answers)}. "
                f"Received: {answer}."
            )
        for name, number in numbers.items():
            if not isinstance(number, (int, np.integer)) or number < 1:
                raise ValueError(f"`{name}` must be an int from 1. Received: {number!r}.")

    # Texts to rows: pairs of ids, special tokens among them, and segments

    @functools.cached_property
    def _of_words(self):
        """The tokenizer for texts that come as words, each of which stands behind a space."""
        text = self._tokenizer.to_str()
        prefixed = text.replace('"add_prefix_space":false', '"add_prefix_space":true')
        return tokenizers.Tokenizer.from_str(prefixed) if prefixed != text else self._tokenizer

    def _encode(self, texts, are_words=False):
        tokenizer = self._of_words if are_words else self._tokenizer
        for text in texts:  # The library would take two for one.
            if isinstance(text, (list, tuple)) != are_words:
                raise TypeError(f"A text must be a str. Received: {text!r:.60}.")
        return tokenizer.encode_batch(
            _whole_characters(texts), is_pretokenized=are_words, add_special_tokens=False
        )

    def _ids(self, texts):
        return [encoding.ids for encoding in self._encode(_column(texts))]

    def _room(self, is_pair=False):
        around = self.config["before"] + self.config["after"]
        return self.config["max_length"] - len(around + self.config["between"] * is_pair)

    def _cut(self, first, second=None):
        """Returns the ids of a text, or of a pair, of which as many stay as there is room for."""
        how, room = self.config["truncation"], self._room(second is not None)
        if second is None:
            if how == "only_second":
                raise ValueError("This task reads pairs, truncation='only_second'. Received: one.")
            head = {"tail": 0, "head_tail": min(128, room // 2)}.get(how, room)
            fits = len(first) <= room
            return (first if fits else first[:head] + first[len(first) - room + head :],)
        a, b = len(first), len(second)
        if how == "longest_first":
            kept = max((room + 1) // 2, room - b), max(room // 2, room - a)
        else:
            kept = {"only_first": (room - b, b), "only_second": (a, room - a)}.get(how, (-1, -1))
        if min(kept) < 0:
            raise ValueError(
                f"Pairs must leave room for both texts, with truncation={how!r}. Received: {a} and "
                f"{b} tokens where {room} fit. Shorten the longer one."
            )
        return first[: kept[0]], second[: kept[1]]

    def _row(self, first, second=None):
        before, between, after = (self.config[name] for name in ("before", "between", "after"))
        begin = [*before, *first]
        if second is None:
            return begin + after, [0] * (len(begin) + len(after))
        begin, end = begin + between, [*second, *after]
        return begin + end, [0] * len(begin) + [self.config["second_segment"]] * len(end)

    def _windows_of_document(self, ids):
        """Returns the rows of a document, see `bert_keras.LongTextClassifier`."""
        room, most = self._room(), self.config["num_windows"]
        starts = _windows(len(ids), room, self.config["stride"] or room)
        first = {"tail": 0, "head_tail": (most + 1) // 2}.get(self.config["truncation"], most)
        if len(starts) > most:
            starts = starts[:first] + starts[len(starts) - most + first :]
        latest = max(len(ids) - room, 0)
        return [self._row(ids[min(s, latest) : min(s, latest) + room]) for s in starts]

    # Rows to outputs

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Returns the program's outputs, a dict of arrays, for a dict of arrays."""
        return dict(zip(self._output_names, self._session.run(None, inputs), strict=True))

    def _run(self, rows):
        """Returns the outputs of a batch of rows; windows are one example, choices one each."""
        shape = len(rows), max(len(ids) for ids, _ in rows)
        inputs = {name: np.zeros(shape, "int32") for name in ("segment_ids", "padding_mask")}
        inputs["token_ids"] = np.full(shape, self.config["pad_token_id"], "int32")
        for row, (ids, segments) in enumerate(rows):
            for name, values in zip(inputs, (segments, 1, ids), strict=True):
                inputs[name][row, : len(ids)] = values
        axes = () if self._num_axes == 2 else (0 if "num_windows" in self.config else 1,)
        given = {name: np.expand_dims(inputs[name], axes) for name in self._input_names}
        return self.run(given)

    def _outputs(self, rows, batch_size):
        """Returns a dict of outputs for each row; rows of like length are computed together."""
        found = [None] * len(rows)
        order = sorted(range(len(rows)), key=lambda index: len(rows[index][0]))
        for start in range(0, len(order), batch_size):
            part = order[start : start + batch_size]
            outputs = self._run([rows[index] for index in part])
            for place, index in enumerate(part):
                found[index] = {name: output[place] for name, output in outputs.items()}
        return found

    # Outputs to answers

    def _class_of(self, logits, threshold):
        names = self.config["label_names"] or list(range(self.config["num_classes"]))
        kind = self.config["problem_type"]
        if kind == "regression":
            scores = logits.tolist()
            return {"score": scores[0]} if len(scores) == 1 else {"scores": scores}
        shares = sigmoid(logits) if kind == "multi_label" else softmax(logits)
        named = dict(zip(names, shares.tolist(), strict=True))
        if kind == "single_label":
            return {"label": max(named, key=named.get), "probabilities": named}
        if isinstance(threshold, dict):
            if threshold.keys() != set(names):
                raise ValueError(
                    f"`threshold` must have each label's name, {names}. Received: {threshold}."
                )
            threshold = [threshold[name] for name in names]
        chosen = np.broadcast_to(shares >= np.asarray(threshold, "float64"), (len(names),))
        labels = [name for name, is_chosen in zip(names, chosen, strict=True) if is_chosen]
        return {"labels": labels, "probabilities": named}

    def _likeliest(self, logits, top_k):
        shares = softmax(logits)[: self._tokenizer.get_vocab_size()]
        best = np.argsort(-shares, kind="stable")[:top_k].tolist()
        return [(self._readable(id), float(shares[id])) for id in best]

    def _readable(self, id):
        token = self._tokenizer.id_to_token(id).partition("\n")[0].removeprefix("\0")
        if self.config["is_wordpiece"]:
            return token
        text = self._tokenizer.decode([id], skip_special_tokens=False).strip()
        return token if "\ufffd" in text else text or token

    # Words and their tags

    def _placed(self, sentence):
        """Returns the text of a sentence, and where its words lie in it."""
        if not isinstance(sentence, str):
            words, spans, start = _column(sentence), [], 0
            between = "" if all(len(word) <= 1 for word in words) else " "
            for word in words:
                spans.append((start, start + len(word)))
                start += len(word) + len(between)
            return between.join(words), spans
        [encoding], spans, last = self._encode([sentence]), [], None
        for word, (start, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
            if word != last:
                spans.append((start, end))
            spans[-1], last = (spans[-1][0], end), word
        return sentence, with_marks(sentence, spans)

    def _word_logits(self, sentences, batch_size):
        """Returns the logits of words, an array a sentence, each of its window of most context."""
        room, before = self._room(), len(self.config["before"])
        rows, places, logits = [], [], []
        encodings = self._encode(sentences, are_words=True)
        for number, (words, encoding) in enumerate(zip(sentences, encodings, strict=True)):
            pieces = list(zip(encoding.word_ids, encoding.ids, strict=True))
            lost = set(range(len(words))) - set(encoding.word_ids)
            pieces = sorted(
                [*pieces, *((word, self.config["unknown_token_id"]) for word in lost)],
                key=lambda piece: piece[0],
            )
            starts = _windows(len(pieces), room, self.config["stride"] or max(1, room // 2))
            owners = _of_most_context(starts, len(pieces), room)
            for window, start in enumerate(starts):
                inside = pieces[start : start + room]
                rows.append(self._row([id for _, id in inside]))
                places.append(
                    [
                        (number, word, before + column)
                        for column, (word, _) in enumerate(inside)
                        if owners[start + column] == window
                        and (start + column == 0 or pieces[start + column - 1][0] != word)
                    ]
                )
            logits.append(np.zeros((len(words), self.config["num_classes"]), "float32"))
        for found, outputs in zip(places, self._outputs(rows, batch_size), strict=True):
            for number, word, column in found:
                logits[number][word] = outputs["logits"][column]
        return logits

    def _tagged(self, text, spans, words, logits):
        if self.config["crf"] and len(words):
            tags, shares = _chain(logits, *map(np.float32, self.config["crf"]))
        else:
            tags, shares = logits.argmax(-1), softmax(logits)
        names = [(self.config["label_names"] or range(logits.shape[1]))[tag] for tag in tags]
        entities = []
        for kind, first, last in _entities(names, self.config["entity_tags"]):
            start, end = spans[first][0], spans[last][1]
            score = float(np.mean([shares[word][tags[word]] for word in range(first, last + 1)]))
            entity = kind, text[start:end], start, end, score
            names_of = "type", "text", "start", "end", "score"
            entities.append(dict(zip(names_of, entity, strict=True)))
        return {"text": text, "words": list(zip(words, names, strict=True)), "entities": entities}

    # Spans

    def _spans(self, question, context, top_k, batch_size):
        """Returns the best answers, see `bert_keras.tasks.span_search.find_spans`."""
        config, room = self.config, self._room(is_pair=True)
        asked, told = self._encode([question, context])
        if not asked.ids or not told.ids:
            raise ValueError(
                "A question and its context need a token each. Received: "
                f"{question[:60]!r} and {context[:60]!r}."
            )
        asked = asked.ids[: min(config["max_question_length"], room // 2)]
        room, first = room - len(asked), len(config["before"] + asked + config["between"])
        starts = _windows(len(told.ids), room, config["stride"])
        owners = _of_most_context(starts, len(told.ids), room)
        rows = [self._row(asked, told.ids[start : start + room]) for start in starts]
        # Logits of start and end, and from here on their logarithms of probabilities.
        scores = [
            np.stack([found["start_logits"], found["end_logits"]])[:, : len(ids)]
            for found, (ids, _) in zip(self._outputs(rows, batch_size), rows, strict=True)
        ]
        inside = [slice(first, first + len(told.ids[start : start + room])) for start in starts]
        if config["normalization"] == "document":
            own = [scores[w][:, first + t - starts[w], None] for t, w in enumerate(owners)]
            null = min(scores, key=lambda window: window[:, 0].sum())[:, :1]
            own = log_softmax(np.concatenate([null, *own], axis=1))
            null, own = own[:, 0].sum(), own[:, 1:]
            scores = [own[:, start : start + room] for start in starts]
        else:
            scores = [log_softmax(window) for window in scores]
            null = min(window[:, 0].sum() for window in scores)
            scores = [window[:, part] for window, part in zip(scores, inside, strict=True)]
        candidates, steps = [], np.arange(min(config["max_answer_length"], room))
        for w, (start, (begins, ends)) in enumerate(zip(starts, scores, strict=True)):
            firsts = np.flatnonzero(owners[start : start + room] == w)
            ends = np.pad(ends, (0, len(steps)), constant_values=-np.inf)
            of_spans = (begins[firsts, None] + ends[firsts[:, None] + steps]).ravel()
            # Texts repeat at different places, and only the best of each is kept.
            for place in np.argsort(-of_spans, kind="stable")[: 2 * top_k + 10]:
                begin, step = start + firsts[place // len(steps)], place % len(steps)
                candidates.append((-float(of_spans[place]), w, int(begin), int(begin + step)))
        spans, offsets, answers = sorted(candidates), with_marks(context, told.offsets), {}
        threshold = config["no_answer_threshold"]
        if threshold is not None and null + spans[0][0] > threshold:
            answers[""] = (None, None, float(np.exp(null)))
        for score, _, begin, end in spans:
            if len(answers) < top_k and score < np.inf:
                start, end = offsets[begin][0], offsets[end][1]
                answers.setdefault(context[start:end], (start, end, float(np.exp(-score))))
        names = "answer", "start", "end", "probability"
        found = [dict(zip(names, (text, *rest), strict=True)) for text, rest in answers.items()]
        return found[0] if top_k == 1 else found


def _column(texts):
    """Returns a list, tuple, array or column of texts, or of lists of texts, as a list."""
    texts = texts.tolist() if hasattr(texts, "tolist") else texts
    if not isinstance(texts, (list, tuple)):
        raise TypeError(f"Texts must be a str or a column of str. Received: {texts!r:.60}.")
    return list(texts)


def _whole_characters(text):
    """Returns texts without lone surrogates, which UTF-8 cannot hold."""
    if isinstance(text, str):
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if not isinstance(text, (list, tuple)):
        raise TypeError(f"A text must be a str. Received: {text!r:.60}.")
    return [_whole_characters(each) for each in text]


def with_marks(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Lengthens spans over the marks that follow them and that no span covers.

    A lower-casing tokenizer strips accents, so where an accent is a character of its own
    ("cafe\\u0301") the offsets of the token end before it. Cut there, the text would lose it.

    Args:
        text: str.
        spans: list of `(begin, end)` in characters, in order.

    Returns:
        List of `(begin, end)`, each lengthened over combining marks, variation selectors and
        joiners, at most up to where the next span begins.

    Example:

    >>> with_marks("cafe\\u0301 noir", [(0, 4), (6, 10)])
    [(0, 5), (6, 10)]
    """
    if text.isascii():
        return spans
    found, limits = [], [start for start, _ in spans[1:]] + [len(text)] * bool(spans)
    for (start, end), limit in zip(spans, limits, strict=True):
        while end < limit and (
            unicodedata.category(text[end])[0] == "M" or text[end] in "\u200c\u200d"
        ):
            end += 1
        found.append((start, end))
    return found


def _windows(length, room, stride):
    """Returns where the windows over so many tokens begin."""
    step = min(stride, room)
    return [step * place for place in range(1 - (min(room - length, 0) // step))]


def _of_most_context(starts, length, room):
    """Returns for each token the number of the window where it has the most context around it."""
    best, owners = np.full(length, -1.0), np.zeros(length, int)
    for window, start in enumerate(starts):
        left = np.arange(min(room, length - start))
        score = np.minimum(left, left[::-1]) + 0.01 * len(left)
        part = slice(start, start + len(left))
        owners[part] = np.where(score > best[part], window, owners[part])
        best[part] = np.maximum(score, best[part])
    return owners


def _entities(tags, meaning):
    """Returns `(type, first word, last word)` of a sentence's entities, as conlleval reads tags."""
    entities, before, kind = [], "O", None
    for word, tag in enumerate(meaning.get(tag, "O") for tag in tags):
        now, kind_now = _SYNONYMS.get(tag[0], tag[0]), tag[2:] or "_"
        goes_on = before in "BI" and now in "IE" and kind_now == kind
        if now != "O" and not goes_on:
            entities.append((kind_now, word, word))
        elif goes_on:
            entities[-1] = (kind, entities[-1][1], word)
        before, kind = now, kind_now
    return entities


def _chain(emissions, start, end, transitions):
    """Returns the best tags of a conditional random field, and all tags' probabilities."""
    before, after, best, came_from = [start + emissions[0]], [end], start + emissions[0], []
    for row, last in zip(emissions[1:], emissions[:0:-1], strict=True):
        before.append(_log_sum_exp((before[-1][:, None] + transitions).T)[..., 0] + row)
        after.insert(0, _log_sum_exp(transitions + last + after[0])[..., 0])
        paths = best[:, None] + transitions
        came_from.append(paths.argmax(0))
        best = paths.max(0) + row
    tags = [int((best + end).argmax())]
    for origin in reversed(came_from):
        tags.insert(0, int(origin[tags[0]]))
    return tags, softmax(np.array(before) + np.array(after))


def _log_sum_exp(values):
    highest = values.max(axis=-1, keepdims=True)
    return highest + np.log(np.exp(values - highest).sum(axis=-1, keepdims=True))


def log_softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Returns the logarithms of `softmax(logits)` over the last axis."""
    return logits - _log_sum_exp(logits)


def softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Returns probabilities that sum to 1 over the last axis, in the dtype of the logits."""
    return np.exp(log_softmax(logits))


def sigmoid(logits: NDArray[Any]) -> NDArray[Any]:
    """Returns the probability of each logit by itself, in the dtype of the logits."""
    return 0.5 * (1 + np.tanh(0.5 * logits))


def ask(
    task: Any, name: str, rows: Sequence[Sequence[str]], **options: Any
) -> list[Any] | NDArray[np.float32]:
    """Returns the answers to rows of texts, by the method of a task that a name says.

    Args:
        task: an `ExportedTask`, or the task itself.
        name: str, one of `ANSWERS`.
        rows: list of tuples of str: a text or a pair, question and context, context and choices.
        **options: arguments of the method.
    """
    columns = [list(column) for column in zip(*rows, strict=name != "choose")]
    if name == "choose":
        columns = [columns[0], [list(row[1:]) for row in rows]]
    elif name == "classify" and len(columns) == 2:
        columns = [tuple(columns)]
    return getattr(task, name)(*columns, **options)


def _main():
    import argparse

    parser = argparse.ArgumentParser(description="Answers texts by lines of JSON.")
    told = "a text each, or one row of two or more; else each line of standard input, tabs between"
    parser.add_argument("texts", nargs="*", help=told)
    texts = parser.parse_args().texts
    if not texts and sys.stdin.isatty():
        parser.error("Give texts, or lines on standard input.")
    try:
        task = load(os.path.dirname(os.path.abspath(__file__)))
        name = task.answers[0]
        takes_rows = name in ("answer", "choose", "is_next")
        rows = [texts] if takes_rows and texts else [[text] for text in texts]
        lines = () if texts else (line.rstrip("\r\n") for line in sys.stdin)
        rows += [line.split("\t") if takes_rows else [line] for line in lines]
        for answer in ask(task, name, rows) if rows else ():
            print(json.dumps(answer.tolist() if name == "embed" else answer, ensure_ascii=False))
    except (ImportError, OSError, TypeError, ValueError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    _main()
