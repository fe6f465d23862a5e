"""Answers of an exported task without Keras: onnxruntime, tokenizers and NumPy are all it needs.

`task.export("served", format="onnx")` writes a folder with a copy of this file, which answers where
this package is not installed, from the shell too:

    python served/runtime.py "What a film!" "Never again."

| in the folder | what it is |
|---|---|
| `model.onnx` | from `token_ids`, `padding_mask`, `segment_ids` to logits, spans or vectors |
| `tokenizer.json` | from texts to ids, as the `tokenizers` library reads it |
| `config.json` | special tokens around texts, lengths, labels, and other settings of the task |
| `runtime.py` | this file |
| `answers/` | from logits to answers, a copy of `bert_keras.answers` |
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bert_keras.types import OneText, Path, Texts

# Raised when a key of `config.json` gets another meaning.
FORMAT = 1
ANSWERS = ("classify", "tag", "answer", "choose", "fill_mask", "embed", "is_next", "is_replaced")
ANSWERS += ("rank", "token_weights")
# Keys of the config whose values must be above 0: lengths, and what is divided by.
_SIZES = ("max_length", "stride", "num_windows", "max_question_length", "max_answer_length")
# The most logits that a call of a language model returns: 128 MiB of float32.
_LOGITS_AT_ONCE = 2**25
# The logit of a column that is padding.
_PADDING_LOGIT = -1e9


def _import_answers():
    """Returns the package `answers`: this library's own, or the copy in an exported folder."""
    if __package__ == "bert_keras.export":
        return importlib.import_module("bert_keras.answers")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "answers", "__init__.py")
    # Under a name of its own, since a program may load several folders.
    spec = importlib.util.spec_from_file_location(f"answers_{zlib.crc32(path.encode())}", path)
    package = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    return package


answers: Any = _import_answers()


def load(folder: Path, providers: Iterable[str] = ("CPUExecutionProvider",)) -> ExportedTask:
    """Returns the exported task of a folder.

    Args:
        folder: str or path, which a task's `export(folder, format="onnx")` wrote.
        providers: names of execution providers, see `onnxruntime.InferenceSession`.

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
    """Returns whether an export wrote a folder: other folders have files of the same names."""
    return "format" in _config_of(folder)


def _config_of(folder):
    """Returns the dict in config.json beside a program; `{}` where there is no such dict."""
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
    methods, sizes = config.get("answers"), {name: config.get(name) for name in _SIZES}
    is_known = isinstance(methods, list) and methods and all(x in ANSWERS for x in methods)
    wrong = {k: x for k, x in sizes.items() if x is not None and (type(x) is not int or x < 1)}
    if wrong or not is_known:
        raise ValueError(
            f"config.json must name `answers`, of {ANSWERS}, and sizes from 1. Received: "
            f"answers={methods!r}, {wrong} in {folder}. Export it again."
        )


def answers_of(task: Any) -> list[str]:
    """Returns the names of the methods, out of `ANSWERS`, by which a task answers."""
    if isinstance(task, ExportedTask):
        return task.answers
    # A method that only refuses another library's name for an answer has another name itself.
    names = [name for name in ANSWERS if getattr(getattr(task, name, None), "__name__", "") == name]
    # Sparse vectors, which need a library, are answers by name.
    return [name for name in names if name != "embed" or "token_weights" not in names]


class ExportedTask:
    """Answers as the exported task does, by the methods that `answers` names.

    Attributes:
        answers: list of str, out of `ANSWERS`.
        config: dict, the content of config.json.

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
            # As for other libraries on a CPU; the default is all cores.
            threads = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
            options.intra_op_num_threads = int(threads) if threads.isdigit() else 0
            self._session = onnxruntime.InferenceSession(paths[1], options, list(providers))
        except Exception as error:  # Both libraries raise errors without a class of their own.
            raise ValueError(f"{folder} cannot be read ({error}). Export it again.") from error
        self._input_names = [value.name for value in self._session.get_inputs()]
        self._num_axes = len(self._session.get_inputs()[0].shape)
        self._output_names = [value.name for value in self._session.get_outputs()]

    # Answers: for one text as the task gives them, for a list, tuple or column of texts a list.

    def classify(
        self,
        texts: OneText | Texts,
        batch_size: int = 32,
        threshold: float | Sequence[float] | Mapping[str, float] = 0.5,
    ) -> Any:
        """Returns classes, labels or scores, see `bert_keras.TextClassifier.classify`."""
        self._check("classify", batch_size=batch_size)
        is_pair = isinstance(texts, tuple) and len(texts) == 2
        if isinstance(texts, str):
            return self.classify([texts], batch_size, threshold)[0]
        if is_pair and all(isinstance(text, str) for text in texts):
            return self.classify(tuple([text] for text in texts), batch_size, threshold)[0]
        names = self.config["label_names"] or list(range(self.config["num_classes"]))
        threshold = answers.check_threshold(threshold, names)
        logits = self.logits(texts, batch_size)
        logits = answers.activated(logits, self.config.get("activation", "linear"))
        logits = logits / self.config.get("temperature", 1.0)
        return answers.class_answers(logits, self.config["problem_type"], names, threshold)

    def logits(
        self, texts: Texts | tuple[Texts, Texts], batch_size: int = 32
    ) -> NDArray[np.float32]:
        """Returns a classifier's logits of a column of texts or of pairs, `(n, num_classes)`."""
        self._check("classify", batch_size=batch_size)
        is_pair = isinstance(texts, tuple) and len(texts) == 2
        if is_pair and self.config.get("prompts"):  # A reranker's.
            texts = self._prompted(texts[0], None), texts[1]
        return self._logits(texts, is_pair, batch_size)

    def _prompted(self, texts, prompt):
        """Returns texts after a prompt, see `prompt_text`."""
        prompts, default = self.config.get("prompts") or {}, self.config.get("default_prompt")
        before = answers.prompt_text(prompt, prompts, default)
        return [x if not isinstance(x, str) else before + x for x in _column(texts)]

    def _logits(self, texts, is_pair, batch_size):
        columns = [self._ids(column) for column in (texts if is_pair else (texts,))]
        if "num_windows" in self.config:
            if is_pair:
                raise ValueError("Documents are single texts. Received: pairs.")
            documents = map(self._windows_of_document, *columns)
            logits = [self._run(rows)["logits"][0] for rows in documents]
        else:
            rows = [self._row(*self._cut(*ids)) for ids in zip(*columns, strict=True)]
            logits = [outputs["logits"] for outputs in self._outputs(rows, batch_size)]
        return np.reshape(np.array(logits, "float32"), (-1, self.config["num_classes"]))

    def zero_shot(
        self,
        texts: str | Texts,
        labels: Sequence[str],
        hypothesis: str = "This example is {}.",
        multi_label: bool = False,
        batch_size: int = 32,
        threshold: float | Sequence[float] | Mapping[str, float] = 0.5,
    ) -> Any:
        """Returns which labels texts entail, see `bert_keras.ZeroShotClassifier.classify`."""
        hypotheses = answers.check_hypotheses(labels, hypothesis)
        threshold = answers.check_threshold(threshold, labels)
        if isinstance(texts, str):
            options = labels, hypothesis, multi_label, batch_size, threshold
            return self.zero_shot([texts], *options)[0]
        texts = _column(texts)
        pairs = [text for text in texts for _ in labels], hypotheses * len(texts)
        logits, names = self.logits(pairs, batch_size), self.config["label_names"]
        return answers.entailment_answers(logits, names, labels, multi_label, threshold)

    def score(
        self,
        queries: str | Texts,
        texts: Texts,
        batch_size: int = 32,
        prompt: str | None = None,
    ) -> NDArray[np.float32]:
        """Returns how well texts answer queries, see `bert_keras.Reranker.score`."""
        self._check("rank", batch_size=batch_size)
        texts = _column(texts)
        queries = [queries] * len(texts) if isinstance(queries, str) else _column(queries)
        pairs = self._prompted(queries, prompt), texts
        logits = self._logits(pairs, is_pair=True, batch_size=batch_size)[:, 0]
        return answers.activated(logits, self.config.get("activation", "linear"))

    def rank(
        self,
        query: str,
        texts: Texts,
        top_k: int | None = None,
        batch_size: int = 32,
        prompt: str | None = None,
    ) -> list[dict[str, Any]]:
        """Returns the texts that answer a query best, see `bert_keras.Reranker.rank`."""
        self._check("rank", **({} if top_k is None else {"top_k": top_k}))
        return answers.ranked(self.score(query, texts, batch_size, prompt), top_k)

    def tag(self, sentences: str | Texts, batch_size: int = 32) -> Any:
        """Returns words, tags and entities, see `bert_keras.TokenClassifier.tag`."""
        self._check("tag", batch_size=batch_size)
        if isinstance(sentences, str):
            return self.tag([sentences], batch_size)[0]
        placed = [self._placed(sentence) for sentence in _column(sentences)]
        if not placed:
            return []
        chain = [np.array(weights, "float32") for weights in self.config["crf"]] or None
        logits = self._word_logits(_column(sentences), batch_size)
        return answers.tagged_texts(placed, logits, self.config["label_names"], chain)

    def piece_logits(self, texts: Texts, batch_size: int = 32) -> list[NDArray[np.float32]]:
        """Returns a tagger's logits of every token of texts, one `(num_tokens, num_tags)` each."""
        self._check("tag", batch_size=batch_size)
        return self._word_logits(_column(texts), batch_size, are_pieces=True)

    def answer(
        self, question: str | Texts, context: str | Texts, top_k: int = 1, batch_size: int = 32
    ) -> Any:
        """Returns spans of contexts, see `bert_keras.QuestionAnswering.answer`."""
        self._check("answer", top_k=top_k, batch_size=batch_size)
        if isinstance(question, str):
            return self.answer([question], context, top_k, batch_size)[0]
        questions = _column(question)
        if not questions:
            return []
        contexts = [context] * len(questions) if isinstance(context, str) else _column(context)
        rows, encodings = self._windows_of_questions(questions, contexts)
        logits = np.full(
            (2, len(rows), max(len(ids) for ids, _ in rows)), _PADDING_LOGIT, "float32"
        )
        for row, outputs in enumerate(self._outputs(rows, batch_size)):
            length = len(rows[row][0])
            logits[:, row, :length] = [outputs[x][:length] for x in ("start_logits", "end_logits")]
        options = {name: self.config[name] for name in ("max_answer_length", "normalization")}
        n_best = answers.find_spans(encodings, *logits, size=top_k, **options)
        threshold = self.config["no_answer_threshold"]
        return [answers.span_answers(best, top_k, threshold) for best in n_best]

    def choose(
        self, context: str | Texts, choices: Texts | Iterable[Texts], batch_size: int = 32
    ) -> Any:
        """Returns the choices that fit best, see `bert_keras.MultipleChoice.choose`."""
        self._check("choose", batch_size=batch_size)
        if isinstance(context, str):
            return self.choose([context], [choices], batch_size)[0]
        choices, rows = _column(choices), []
        for first, texts in zip(self._ids(context), choices, strict=True):
            if not len(texts):
                raise ValueError("Each context needs at least one choice. Received: none.")
            rows += [self._row(*self._cut(first, second)) for second in self._ids(texts)]
        logits = iter([outputs["logits"][0] for outputs in self._outputs(rows, batch_size)])
        return [
            answers.choice_answer(texts, np.array([next(logits) for _ in texts]))
            for texts in choices
        ]

    def embed(
        self, texts: str | Texts, prompt: str | None = None, batch_size: int = 32
    ) -> NDArray[np.float32]:
        """Returns the vectors of texts, see `bert_keras.TextEmbedder.embed`."""
        self._check("embed", batch_size=batch_size)
        if "query_marker" in self.config:
            return self._embed_tokens(texts, prompt or "document", batch_size)
        return self._embed(texts, prompt, batch_size)

    def token_weights(
        self,
        text: str | Texts,
        top_k: int | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
    ) -> Any:
        """Returns tokens and weights, see `bert_keras.SparseTextEmbedder.token_weights`."""
        self._check("token_weights", batch_size=batch_size, top_k=1 if top_k is None else top_k)
        if isinstance(text, str):
            return self.token_weights([text], top_k, prompt, batch_size)[0]
        weights = self.config.get("query_weights")
        if prompt == "query" and weights is not None:
            return self._query_weights(_column(text), weights, top_k)
        # A program computes the logits of all rows of a batch together.
        max_rows = _LOGITS_AT_ONCE // (self.config["max_length"] * self._tokenizer.get_vocab_size())
        results, batch_size = [], max(1, min(batch_size, max_rows))
        for weights in self._embed(text, prompt, batch_size):
            (ids,) = np.nonzero(weights)
            ids = ids[np.argsort(-weights[ids], kind="stable")][:top_k]
            tokens = map(self._tokenizer.id_to_token, ids.tolist())
            results.append(list(zip(tokens, weights[ids].tolist(), strict=True)))
        return results

    def _query_weights(self, texts, weights, top_k):
        """Returns the tokens of queries that have a weight, without the program."""
        results, prompt = [], self.config["prompts"].get("query", "")
        for ids in self._ids(self._prompted(texts, prompt)):
            tokens = map(self._tokenizer.id_to_token, sorted({*ids[: self.config["max_length"]]}))
            row = [(token, weights[token]) for token in tokens if weights.get(token)]
            results.append(sorted(row, key=lambda pair: -pair[1])[:top_k])
        return results

    def _embed_tokens(self, texts, kind, batch_size):
        """Returns the vectors of tokens, see `bert_keras.MultiVectorEmbedder.embed`."""
        if isinstance(texts, str):
            return self._embed_tokens([texts], kind, batch_size)[0]
        if kind not in ("query", "document"):
            raise ValueError(f"`kind` must be 'query' or 'document'. Received: {kind!r:.60}.")
        vocabulary, config = self._tokenizer.get_vocab(), self.config
        marker = answers.split_marker(vocabulary, config[f"{kind}_marker"])
        texts = [x if not isinstance(x, str) else marker[1] + x.strip() for x in _column(texts)]
        room, expansion = self._room(), config["query_expansion"] if kind == "query" else None
        if config[f"{kind}_length"]:
            room -= config["max_length"] - config[f"{kind}_length"]
        skipped = [vocabulary[x] for x in config["skipped_tokens"] if x in vocabulary]
        rows, lengths = [], []
        for ids in self._ids(texts):
            ids, _ = self._row([*marker[0], *ids][:room])
            lengths.append(len(ids))
            missing = max(0, (expansion or 0) - len(ids))
            rows.append((ids + [config["mask_token_id"]] * missing, [0] * (len(ids) + missing)))
        embeddings = []
        for (ids, _), length, outputs in zip(
            rows, lengths, self._outputs(rows, batch_size, lengths), strict=True
        ):
            counts = np.ones(len(ids), bool)
            counts[:length] &= (kind == "query") | ~np.isin(ids[:length], skipped)
            embeddings.append(outputs["logits"][: len(ids)][counts])
        return embeddings

    def _embed(self, texts, prompt, batch_size):
        if isinstance(texts, str):
            return self._embed([texts], prompt, batch_size)[0]
        prompts, default = self.config.get("prompts", {}), self.config.get("default_prompt")
        before = answers.prompt_text(prompt, prompts, default)
        if before and self.config.get("skips_prompt"):
            raise ValueError(
                "This program pools all tokens, but its task pools those after the prompt. "
                f"Received: the prompt {before[:60]!r}. Pass prompt='', or ask the task itself."
            )
        texts = [x if not isinstance(x, str) else x.strip() for x in self._prompted(texts, prompt)]
        rows = [self._row(self._cut(ids)[0]) for ids in self._ids(texts)]
        vectors = [outputs["logits"] for outputs in self._outputs(rows, batch_size)]
        return np.array(vectors, "float32").reshape(
            len(rows), self._session.get_outputs()[0].shape[-1]
        )

    def fill_mask(
        self,
        text: str | Texts,
        top_k: int = 5,
        batch_size: int = 32,
        targets: Sequence[str] | None = None,
    ) -> Any:
        """Returns the likeliest tokens, see `bert_keras.MaskedLM.fill_mask`."""
        self._check("fill_mask", top_k=top_k, batch_size=batch_size)
        if isinstance(text, str):
            return self.fill_mask([text], top_k, batch_size, targets)[0]
        mask, vocabulary_size = self.config["mask_token_id"], self._tokenizer.get_vocab_size()
        rows = []
        for index, ids in enumerate(self._ids(text)):
            rows.append(self._row(*self._cut(ids)))
            count = rows[-1][0].count(mask)
            if count < max(1, ids.count(mask)):
                raise ValueError(
                    f"Each text needs a {self.mask_token}, where texts are not "
                    f"cut. Received: {count} within the first {self.config['max_length']} tokens "
                    f"of the text at the index {index}."
                )
        longest = max((len(ids) for ids, _ in rows), default=1)
        at_once = max(1, _LOGITS_AT_ONCE // (longest * vocabulary_size))
        if targets is not None:
            to_id = self._tokenizer.token_to_id
            encode, unknown_id = lambda x: self._ids([x])[0], self.config["unknown_token_id"]
            targets = answers.ids_of_targets(targets, to_id, encode, unknown_id)
        options, filled = (top_k, vocabulary_size, self._readable, targets), []
        for start in range(0, len(rows), at_once):
            part = rows[start : start + at_once]
            for (ids, _), outputs in zip(part, self._outputs(part, batch_size), strict=True):
                logits = outputs.get("masked_lm", outputs.get("logits"))
                places = [place for place, id in enumerate(ids) if id == mask]
                filled.append([answers.likeliest_tokens(logits[x], *options) for x in places])
        return filled

    def is_next(self, first: str | Texts, second: str | Texts, batch_size: int = 32) -> Any:
        """Returns whether texts follow others, see `bert_keras.NextSentencePrediction.is_next`."""
        self._check("is_next", batch_size=batch_size)
        if isinstance(first, str):
            return self.is_next([first], [second], batch_size)[0]
        pairs = zip(self._ids(first), self._ids(second), strict=True)
        outputs = self._outputs([self._row(*self._cut(*ids)) for ids in pairs], batch_size)
        logits = [output.get("next_sentence", output.get("logits")) for output in outputs]
        return answers.next_sentence_answers(np.reshape(logits, (-1, 2)))

    def is_replaced(self, text: str | Texts, batch_size: int = 32) -> Any:
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
        first, judged = len(self.config["before"]), []
        outputs = self._outputs([self._row(encoding.ids) for encoding in encodings], batch_size)
        for encoding, output in zip(encodings, outputs, strict=True):
            logits = output["logits"][first : first + len(encoding.ids)]
            tokens = list(map(self._readable, encoding.ids))
            judged.append(answers.judged_tokens(tokens, encoding.offsets, logits))
        return judged

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

    # Texts to tokens

    @functools.cached_property
    def _sentence_tokenizer(self):
        """The tokenizer for sentences, which has a space before each of their words."""
        text = self._tokenizer.to_str()
        prefixed = text.replace('"add_prefix_space":false', '"add_prefix_space":true')
        return tokenizers.Tokenizer.from_str(prefixed) if prefixed != text else self._tokenizer

    @functools.cached_property
    def _needs_space(self):
        return answers.needs_space(self._tokenizer, self._sentence_tokenizer)

    def _encode_sentences(self, sentences):
        def encode(batch, are_words):
            return self._encode(batch, are_words, self._sentence_tokenizer)

        separates_words = self.config["is_wordpiece"]
        return answers.encode_sentences(encode, sentences, separates_words, self._needs_space)

    def _encode(self, texts, are_words=False, tokenizer=None):
        for text in texts:  # The library would take a tuple for a pair.
            if isinstance(text, (list, tuple)) != are_words:
                raise TypeError(f"A text must be a str. Received: {text!r:.60}.")
        return (tokenizer or self._tokenizer).encode_batch(
            _whole_characters(texts), is_pretokenized=are_words, add_special_tokens=False
        )

    def _ids(self, texts):
        return [encoding.ids for encoding in self._encode(_column(texts))]

    def _placed(self, sentence):
        """Returns the text of a sentence, and the characters of its words."""
        if not isinstance(sentence, str):
            return answers.join_words(_column(sentence))
        [encoding] = self._encode_sentences([sentence])
        return sentence, answers.find_words(sentence, encoding.word_ids, encoding.offsets)

    def _readable(self, id):
        token = self._tokenizer.id_to_token(id).partition("\n")[0].removeprefix("\0")
        if self.config["is_wordpiece"]:
            return token
        text = self._tokenizer.decode([id], skip_special_tokens=False).strip()
        return token if "\ufffd" in text else text or token

    # Tokens to rows: pairs of ids, special tokens among them, and segments

    def _room(self, is_pair=False):
        around = self.config["before"] + self.config["after"]
        return self.config["max_length"] - len(around + self.config["between"] * is_pair)

    def _cut(self, first, second=None):
        """Returns the ids of a text, or of a pair, cut to the room that there is."""
        strategy, room = self.config["truncation"], self._room(second is not None)
        if second is None:
            if strategy == "only_second":
                raise ValueError("This task reads pairs, truncation='only_second'. Received: one.")
            head = {"tail": 0, "head_tail": min(128, room // 2)}.get(strategy, room)
            fits = len(first) <= room
            return (first if fits else first[:head] + first[len(first) - room + head :],)
        a, b = len(first), len(second)
        lengths = {
            "longest_first": (max((room + 1) // 2, room - b), max(room // 2, room - a)),
            "only_first": (room - b, b),
            "only_second": (a, room - a),
        }.get(strategy, (-1, -1))
        if min(lengths) < 0:
            raise ValueError(
                f"Pairs must leave room for both texts, with truncation={strategy!r}. Received: "
                f"{a} and {b} tokens where {room} fit. Shorten the longer one."
            )
        return first[: lengths[0]], second[: lengths[1]]

    def _row(self, first, second=None):
        before, between, after = (self.config[name] for name in ("before", "between", "after"))
        begin = [*before, *first]
        if second is None:
            return begin + after, [0] * (len(begin) + len(after))
        begin, end = begin + between, [*second, *after]
        return begin + end, [0] * len(begin) + [self.config["second_segment"]] * len(end)

    def _windows_of_document(self, ids):
        """Returns the rows of a document, see `bert_keras.LongTextClassifier`."""
        config, room = self.config, self._room()
        stride, truncation = config["stride"] or room, config["truncation"]
        windows = answers.document_windows(
            [len(ids)], room, stride, config["num_windows"], truncation
        )
        return [self._row(ids[start : start + room]) for start in windows.starts]

    def _windows_of_questions(self, questions, contexts):
        """Returns the rows of questions and parts of their contexts, and a `ContextWindows`."""
        config, room, encoded = self.config, self._room(is_pair=True), self._encode(contexts)
        queries = [
            ids[: min(config["max_question_length"], room // 2)] for ids in self._ids(questions)
        ]
        for question, ids, context, x in zip(questions, queries, contexts, encoded, strict=True):
            if not ids or not x.ids:
                raise ValueError(
                    "A question and its context need a token each. Received: "
                    f"{question[:60]!r} and {context[:60]!r}."
                )
        lengths = np.array(list(map(len, queries)))
        rooms = room - lengths
        windows = answers.cut_windows([len(x.ids) for x in encoded], rooms, config["stride"])
        rows = [
            self._row(queries[question], encoded[question].ids[start : start + length])
            for question, start, length in zip(*windows, strict=True)
        ]
        offsets = [
            np.array(answers.with_marks(context, encoding.offsets))
            for context, encoding in zip(contexts, encoded, strict=True)
        ]
        first = len(config["before"] + config["between"]) + lengths[windows.documents]
        return rows, answers.ContextWindows(contexts, offsets, windows, first)

    def _word_logits(self, sentences, batch_size, are_pieces=False):
        """Returns the logits of words, an array per sentence, each of its window of most context.

        Args:
            sentences: list of str or of lists of str.
            batch_size: int.
            are_pieces: bool, whether each token counts as a word.
        """
        sentences, room = [s if isinstance(s, str) else _column(s) for s in sentences], self._room()
        encodings = self._encode_sentences(sentences)
        ids, words, lengths, num_words = answers.pieces_of_words(encodings, sentences)
        if (ids < 0).any():
            ids[ids < 0] = self.config["unknown_token_id"]
        if are_pieces:
            words, num_words = np.arange(len(ids)), lengths.tolist()
        stride = self.config["stride"] or max(1, room // 2)
        windows = answers.cut_windows(lengths, room, stride)
        starts = (np.cumsum(lengths) - lengths)[windows.documents] + windows.starts
        rows = [
            self._row(ids[start : start + length].tolist())
            for start, length in zip(starts, windows.lengths, strict=True)
        ]
        borders = np.cumsum(windows.lengths)[:-1]
        places = np.split(answers.words_in_windows(words, lengths, windows), borders)
        logits = np.zeros((sum(num_words), self.config["num_classes"]), "float32")
        first = len(self.config["before"])
        for numbers, outputs in zip(places, self._outputs(rows, batch_size), strict=True):
            logits[numbers[numbers >= 0]] = outputs["logits"][first:][: len(numbers)][numbers >= 0]
        return np.split(logits, np.cumsum(num_words)[:-1])

    # Rows to outputs

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Returns the program's outputs, a dict of arrays, for a dict of arrays."""
        return dict(zip(self._output_names, self._session.run(None, inputs), strict=True))

    def _run(self, rows, lengths=None):
        """Returns the outputs of a batch of rows; windows are one example, choices one each.

        Args:
            rows: list of pairs of ids and segments.
            lengths: list of int, how many tokens of each row are attended to; `None` for all.
        """
        shape = len(rows), max(len(ids) for ids, _ in rows)
        inputs = {name: np.zeros(shape, "int32") for name in ("segment_ids", "padding_mask")}
        inputs["token_ids"] = np.full(shape, self.config["pad_token_id"], "int32")
        for row, (ids, segments) in enumerate(rows):
            for name, values in zip(inputs, (segments, 1, ids), strict=True):
                inputs[name][row, : len(ids)] = values
        if lengths is not None:
            inputs["scoring_mask"] = inputs["padding_mask"].copy()
            if not self.config["attend_to_expansion"]:
                inputs["padding_mask"] *= np.arange(shape[1]) < np.array(lengths)[:, None]
        axes = () if self._num_axes == 2 else (0 if "num_windows" in self.config else 1,)
        return self.run({name: np.expand_dims(inputs[name], axes) for name in self._input_names})

    def _outputs(self, rows, batch_size, lengths=None):
        """Returns a dict of outputs for each row; rows of like length are computed together."""
        results = [None] * len(rows)
        order = sorted(range(len(rows)), key=lambda index: len(rows[index][0]))
        for start in range(0, len(order), batch_size):
            part = order[start : start + batch_size]
            part_lengths = None if lengths is None else [lengths[index] for index in part]
            outputs = self._run([rows[index] for index in part], part_lengths)
            for place, index in enumerate(part):
                results[index] = {name: output[place] for name, output in outputs.items()}
        return results


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


def ask(
    task: Any, name: str, rows: Sequence[Sequence[str]], **options: Any
) -> list[Any] | NDArray[np.float32]:
    """Returns the answers to rows of texts, by the task's method of a name.

    Args:
        task: an `ExportedTask`, or the task itself.
        name: str, one of `ANSWERS`.
        rows: list of tuples of str: a text or a pair, question and context, context and choices,
            query and texts.
        **options: arguments of the method.
    """
    if name == "rank":
        return [task.rank(query, texts, **options) for query, *texts in rows]
    columns = [list(column) for column in zip(*rows, strict=name != "choose")]
    if name == "choose":
        columns = [columns[0], [list(row[1:]) for row in rows]]
    elif name == "classify" and len(columns) == 2:
        columns = [tuple(columns)]
    return getattr(task, name)(*columns, **options)


def _main():
    import argparse

    parser = argparse.ArgumentParser(description="Answers texts by lines of JSON.")
    help = "a text each, or one row of two or more; by default lines of standard input, with tabs"
    parser.add_argument("texts", nargs="*", help=help)
    texts = parser.parse_args().texts
    if not texts and sys.stdin.isatty():
        parser.error("Give texts, or lines on standard input.")
    try:
        task = load(os.path.dirname(os.path.abspath(__file__)))
        name = "rank" if "rank" in task.answers else task.answers[0]
        takes_rows = name in ("answer", "choose", "is_next", "rank")
        rows = [texts] if takes_rows and texts else [[text] for text in texts]
        lines = () if texts else (line.rstrip("\r\n") for line in sys.stdin)
        rows += [line.split("\t") if takes_rows else [line] for line in lines]
        for answer in ask(task, name, rows) if rows else ():
            print(json.dumps(answer.tolist() if name == "embed" else answer, ensure_ascii=False))
    except (ImportError, OSError, TypeError, ValueError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    _main()
