"""Entities of any labels, which are given with the texts: GLiNER."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

import keras
import numpy as np

from bert_keras.answers import zero_shot_spans as spans
from bert_keras.answers.entity_tags import extract_entities
from bert_keras.answers.tagged_texts import as_sentences
from bert_keras.answers.zero_shot_spans import LABEL_POSITIONS, WORD_POSITIONS
from bert_keras.checks import (
    as_column,
    check_bool,
    check_int,
    check_not_empty,
    check_same_length,
    check_shape,
    is_int,
    raise_at_first,
)
from bert_keras.heads.zero_shot_span import ZeroShotSpanHead
from bert_keras.inputs import TOKEN_IDS
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.collate import Rows
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.presets.formats import gliner
from bert_keras.tasks.encoded_labels import take_weights
from bert_keras.tasks.task import Task
from bert_keras.tokenizers.words import join_words
from bert_keras.training.labelled_spans import LabelledSpanF1, LabelledSpanLoss
from bert_keras.types import (
    Inputs,
    Path,
    PredictOptions,
    TaskOptions,
    Texts,
    Threshold,
)

# GLiNER's names of the markers before each label and before the words.
LABEL_TOKEN, SEPARATOR_TOKEN = "<<ENT>>", "<<SEP>>"


@keras.saving.register_keras_serializable(package="bert_keras")
class ZeroShotTagger(Task):
    """Finds entities of labels that are given with the texts: GLiNER.

    The labels stand in one row with the text, `[CLS] <<ENT>> person <<ENT>> city <<SEP>> Ada was
    born in London [SEP]`, so that the encoder reads both together. Each span of up to `max_width`
    words is then compared with each label, see `ZeroShotSpanHead`. One model tags by any labels,
    without training; `fit` makes it better at yours.

    Words are those of GLiNER: runs of letters and digits, also joined by `-` and `_`, and each
    other character. In scripts without spaces, such as Chinese, that is a whole clause: pass lists
    of words or of characters instead of texts. Texts that are too long for one row are read in
    overlapping windows. The reference code reads only the first `max_words` words: for the same
    answers, use `num_windows=1`.

    `fit(texts, entities)` takes for each text a list of its entities: tuples
    `(start, end, label)` in characters, dicts as `tag` returns them, or for lists of words a tag
    for each word, such as `"B-person"`. Each text is trained with its own labels and others of the
    same data, at most `max_labels`: with all of them if these are not more, else with as many as
    it has entities, times a random whole number up to `negative_ratio`. Entities of more than
    `max_width` words cannot be found, and are left out with a warning.

    Args:
        backbone: a `Backbone`.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        dim: int, even, width of the head; `None` for the backbone's.
        max_width: int, the most words of an entity.
        max_words: int, the most words in a row.
        num_windows: int, the most windows over a text; `None` for all of it.
        stride: int, words between the starts of two windows; `None` for half a window.
        max_labels: int, the most labels that a text is trained with.
        negative_ratio: int, see above.
        span_mode, lstm, dropout: see `ZeroShotSpanHead`.
        label_token, separator_token: str, the tokens before each label and before the words; `None`
            for `"<<ENT>>"` and `"<<SEP>>"`, or in a vocabulary without them its mask token and the
            token after texts.
        frozen: `None`, `"embeddings"`, `"backbone"`, or an int, see `Task`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Call arguments:
        inputs: dict of ints: those of the backbone; `word_positions` `(batch, num_words)`, the
            first token of each word; and `label_positions` `(batch, num_labels)`, the marker before
            each label. Both are filled up with 0.
        training: bool, whether dropout is active.

    Returns:
        float32 `(batch, num_words, max_width, num_labels)`, the logit of each span, by its first
        word and its number of words minus 1, and label.

    Raises:
        ValueError: an argument is out of range.

    Example:
    ```python
    tagger = bert_keras.ZeroShotTagger.from_preset("hf://urchade/gliner_medium-v2.1")
    tagger.tag("Ada Lovelace lived in London.", ["person", "city"])["entities"]
    # [{"type": "person", "text": "Ada Lovelace", "start": 0, "end": 12, "score": 0.98}, ...]
    tagger.fit(["Ada Lovelace lived in London."], [[(0, 12, "person"), (22, 28, "city")]])
    ```

    Reference:
        [Zaratiana et al., 2023](https://arxiv.org/abs/2311.08526).
    """

    head_config_keys = ("dim", "max_width", "span_mode", "lstm")
    answerers = (spans.ZeroShotTagAnswerer,)
    further_inputs = (WORD_POSITIONS, LABEL_POSITIONS)
    form = "sentences"
    has_classes = False
    has_imbalanced_targets = True

    def __init__(
        self,
        backbone: Backbone,
        preprocessor: TextPreprocessor | None = None,
        dim: int | None = None,
        max_width: int = 12,
        max_words: int = 384,
        num_windows: int | None = None,
        stride: int | None = None,
        max_labels: int = 25,
        negative_ratio: int = 1,
        span_mode: Literal["markerV0", "marker"] = "markerV0",
        lstm: bool = True,
        dropout: float = 0.1,
        label_token: str | None = None,
        separator_token: str | None = None,
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        super().__init__(backbone, preprocessor, **kwargs)
        self.dim = check_int("dim", backbone.hidden_dim if dim is None else dim, 2)
        self.max_width, self.max_words = check_int("max_width", max_width, 1, 256), max_words
        check_int("max_words", max_words)
        for name, value in (("num_windows", num_windows), ("stride", stride)):
            setattr(self, name, None if value is None else check_int(name, value))
        self.max_labels = check_int("max_labels", max_labels)
        self.negative_ratio = check_int("negative_ratio", negative_ratio, 0)
        self.span_mode, self.lstm, self.dropout = span_mode, check_bool("lstm", lstm), dropout
        self.label_token, self.separator_token = label_token, separator_token
        names = ("dim", "max_width", "span_mode", "lstm", "dropout")
        options = {name: getattr(self, name) for name in names} | {"dtype": self.dtype_policy}
        self.head = ZeroShotSpanHead(backbone.hidden_dim, name="head", **options)

    def call(self, inputs, training=None):
        inputs = dict(inputs)
        positions = [inputs.pop(name) for name in self.further_inputs]
        outputs = self.backbone_outputs(inputs, training=training)
        return self.head(outputs, *positions, training=training)

    def check_arrays(self, inputs: Inputs) -> None:
        """Raises when NumPy inputs do not fit the backbone or each other."""
        super().check_arrays(inputs)
        num_rows, length = inputs[TOKEN_IDS].shape
        for name in self.further_inputs:
            shape = (num_rows, name.removesuffix("_positions") + "s")
            array = check_shape(f"The input {name!r}", inputs[name], shape, "iu")
            rule = f"The input {name!r} must be from 0 to {length - 1}, the positions of a row"
            raise_at_first((array < 0) | (array >= length), array, rule)

    def default_loss(self, label_smoothing):
        """Returns the binary cross-entropy of spans and labels, summed for each text."""
        return LabelledSpanLoss()

    def default_metrics(self):
        """Returns the F1 of spans and labels."""
        return [LabelledSpanF1()]

    def encode_labels(self, labels):
        """Returns the labels of ready inputs, int8 `(batch, num_words, max_width, num_labels)`."""
        labels = np.asarray(labels)
        shape = ("batch", "num_words", self.max_width, "num_labels")
        check_shape("Labels of spans", labels, shape, "iu")
        raise_at_first(np.abs(labels) > 1, labels, "Labels of spans must be 1, 0 or -1")
        return labels.astype("int8")

    # Texts and answers

    def answer_settings(self):
        """Returns the settings of `ZeroShotTagAnswerer`."""
        tokenizer, ids = self.tokenizer, {}
        for name, chosen, usual in (
            ("label_id", self.label_token, (LABEL_TOKEN, tokenizer.mask_token)),
            ("separator_id", self.separator_token, (SEPARATOR_TOKEN, tokenizer.sep_token)),
        ):
            ids[name] = tokenizer.token_to_id(chosen) if chosen else tokenizer.ids_of(usual)[0]
        return {**super().answer_settings(), **ids}

    def encode_texts(self, x, y=None, sample_weight=None, training=False):
        """Returns texts with their entities as rows, see `Task` and the class."""
        if not training:
            raise ValueError(
                "Texts are tagged by labels. Received: texts alone. Call `tag(texts, labels)`."
            )
        rows = LabelledTexts(self, as_sentences(x), y)
        weights = take_weights(sample_weight, rows.texts)
        return rows.labelled(np.zeros(len(rows), "int8"), weights)

    def tag(
        self,
        texts: str | Texts,
        labels: Sequence[str] | Mapping[str, str],
        threshold: Threshold = 0.5,
        flat_ner: bool = True,
        multi_label: bool = False,
        **options: Unpack[PredictOptions],
    ) -> Any:
        """Returns the entities in texts that labels describe.

        Args:
            texts: a str, or a column of str or of lists of words.
            labels: list of str, of which repeated ones count once; or a dict from the labels of the
                answer to descriptions, which the model reads instead. Their order changes the
                scores a little.
            threshold: float, entities are likelier than this; or one for each label, a list or a
                dict by label.
            flat_ner: bool, whether entities must not overlap. `False` allows one inside another.
            multi_label: bool, whether the same words may have several labels.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            For a str one dict, for a column a list of dicts, as `TokenClassifier.tag` returns them:
            `"text"`; `"words"`, with tags such as `"B-person"`; and `"entities"`, a list of dicts
            `{"type": str, "text": str, "start": int, "end": int, "score": float}`, where `score`
            is the probability.

        Raises:
            TypeError, ValueError: texts, labels or the threshold do not fit.
        """
        chosen = {"threshold": threshold, "flat_ner": flat_ner, "multi_label": multi_label}
        return self.ask("tag", texts, labels=labels, **chosen, **options)

    # Files

    def export_to_huggingface(self, folder: Path) -> None:
        """Writes a folder that `gliner.GLiNER.from_pretrained` loads.

        Args:
            folder: str or path, made if missing.

        Raises:
            ValueError: there is no preprocessor, or the encoder's family has no counterpart there.
        """
        self.check_has_preprocessor()
        gliner.write(self, folder)


class LabelledTexts(Rows):
    """Texts with entities, whose labels are drawn when batches are read.

    Args:
        task: a `ZeroShotTagger`.
        texts: list of str or of lists of words.
        entities: for each text a list, see `ZeroShotTagger`.

    Attributes:
        texts: int64 `(num_rows,)`, the index of each row's text.
    """

    def __init__(self, task, texts, entities):
        self.task, maker = task, spans.SpanPacker(task.answer_settings(), task.preprocessor)
        self.maker, self.placed = maker, maker.place(texts)
        golds = read_entities(texts, entities, self.placed, task.max_width)
        self.types = list(dict.fromkeys(label for gold in golds for _, _, label in gold))
        check_not_empty(self.types, "There must be entities to train or to measure on")
        self.label_ids = dict(zip(self.types, maker.label_ids(self.types), strict=True))
        for ids in self.label_ids.values():
            maker.room(maker.prompt([ids])[0])
        costs = sorted((1 + len(ids) for ids in self.label_ids.values()), reverse=True)
        num_others = len(maker.before) + 1 + len(maker.after)
        # Labels may take three quarters of a row.
        self.budget = min(sum(costs[: task.max_labels]), maker.max_length * 3 // 4 - num_others)
        room = maker.max_length - num_others - self.budget
        self.examples, lengths, num_words = [], [], []
        for index, (placed, gold) in enumerate(zip(self.placed, golds, strict=True)):
            windows = maker.windows(placed, room)
            for (first, end), is_counted in zip(
                windows, spans.counted_spans(windows, task.max_width), strict=True
            ):
                inside = [
                    (start - first, last - start, label)
                    for start, last, label in gold
                    if first <= start and last < end and is_counted[start - first, last - start]
                ]
                self.examples.append((index, (first, end), is_counted, inside))
                num_tokens = placed.starts[end] - placed.starts[first]
                lengths.append(num_others + self.budget + min(num_tokens, room))
                num_words.append(end - first)
        super().__init__(lengths, maker.max_length)
        self.texts = np.array([index for index, *_ in self.examples], np.int64)
        self.num_words = spans.WordCounts(self.lengths, num_words)

    def inputs(self, indices, length):
        return {"length": length}  # `draw` makes the inputs, which depend on the labels.

    def draw(self, batch, rows, generator):
        """Returns a batch with labels drawn for its rows, see `BucketedBatches`."""
        chosen, _, *weights = batch
        if generator is not None:
            pool = list(dict.fromkeys(name for row in rows for *_, name in self.examples[row][3]))
            labels = [self.labels_of(row, pool or self.types, generator) for row in rows]
        else:  # Each row has its own labels, whatever the batches are.
            labels = [
                self.labels_of(row, self.types, np.random.default_rng(int(row))) for row in rows
            ]
        return (*self.batch(rows, chosen["length"], labels), *weights)

    def labels_of(self, row, pool, generator):
        """Returns the labels that a row is trained with, at least one, see `ZeroShotTagger`."""
        task, gold = self.task, self.examples[row][3]
        if len(self.types) <= task.max_labels:
            labels = self.types
        else:
            labels = list(dict.fromkeys(label for *_, label in gold))
            count = len(gold) * int(generator.integers(task.negative_ratio + 1))
            others = [name for name in generator.permutation(pool).tolist() if name not in labels]
            labels += others[: max(count, 1 - len(labels))]
        labels = generator.permutation(labels).tolist() if len(labels) > 1 else labels
        costs = np.cumsum([1 + len(self.label_ids[label]) for label in labels])
        return labels[: min(task.max_labels, int(np.sum(costs <= self.budget)))]

    def batch(self, rows, length, labels):
        """Returns the inputs of a batch, and its targets.

        Args:
            rows: int64 `(size,)`.
            length: int, tokens of the padded rows.
            labels: for each row a list of its labels.

        Returns:
            A dict of int32 arrays; and int8 `(size, num_words, max_width, num_labels)`: 1 or 0, and
            -1 for what does not count.
        """
        inputs = []
        for row, names in zip(rows, labels, strict=True):
            index, window, *_ = self.examples[row]
            prompt = self.maker.prompt([self.label_ids[name] for name in names])
            inputs.append(self.maker.row(self.placed[index], window, prompt))
        num_labels = min(len(self.types), self.task.max_labels)
        inputs = self.maker.pack(inputs, length, self.num_words.of(length), num_labels)
        shape = (inputs[WORD_POSITIONS].shape[1], self.task.max_width)
        targets = np.full((len(rows), *shape, inputs[LABEL_POSITIONS].shape[1]), -1, "int8")
        for target, row, names in zip(targets, rows, labels, strict=True):
            *_, is_counted, gold = self.examples[row]
            target[: len(is_counted), :, : len(names)] = is_counted[..., None] - np.int8(1)
            for start, width, name in gold:
                if name in names:
                    target[start, width, names.index(name)] = 1
        return inputs, targets


def read_entities(texts, entities, placed, max_width):
    """Returns the entities of each text by words: lists of `(first word, last word, label)`.

    Args:
        texts: list of str or of lists of words.
        entities: for each text a list, see `ZeroShotTagger`.
        placed: list of `PlacedText`.
        max_width: int, entities of more words are left out, with a warning.

    Raises:
        ValueError: an entity is outside its text, or has another form.
    """
    found, left_out = [], []
    for index, (text_or_words, row, text) in enumerate(zip(texts, entities, placed, strict=True)):
        row = as_column(row, f"y[{index}]")
        if row and all(isinstance(tag, str) for tag in row) and not isinstance(text_or_words, str):
            check_same_length(
                f"Text {index} needs a tag for each word", words=text_or_words, tags=row
            )
            _, places = join_words(text_or_words)
            row = [
                (places[first][0], places[end - 1][1], kind)
                for kind, first, end in extract_entities(row)
            ]
        starts = {start: word for word, (start, _) in enumerate(text.spans)}
        ends = {end: word for word, (_, end) in enumerate(text.spans)}
        found.append([])
        for entity in row:
            start, end, label = _checked_entity(entity, text.text, index)
            first, last = starts.get(start), ends.get(end)
            if None in (first, last) or last - first >= max_width:
                left_out.append((index, text.text[start:end]))
            else:
                found[-1].append((first, last, label))
    if left_out:
        index, first = left_out[0]
        warnings.warn(
            f"{len(left_out)} entities were left out, which have more than max_width={max_width} "
            f"words, or begin or end inside a word. The first is {first!r:.80} in text {index}. "
            "Where words have no spaces between them, pass lists of words or characters.",
            stacklevel=2,
        )
    return found


def _checked_entity(entity, text, index):
    """Returns `(start, end, label)` of an entity, without white space at its ends."""
    if isinstance(entity, Mapping):
        label = entity.get("type", entity.get("label"))
        entity = entity.get("start"), entity.get("end"), label
    entity = tuple(entity) if isinstance(entity, (list, tuple)) else ()
    is_right = len(entity) == 3 and is_int(entity[0]) and is_int(entity[1])
    is_right = is_right and isinstance(entity[2], str)
    is_right = is_right and 0 <= entity[0] < entity[1] <= len(text)
    if not is_right or not text[entity[0] : entity[1]].strip():
        raise ValueError(
            "An entity must be (start, end, label), characters of its text and a str, or a dict "
            f"with the keys start, end and type. Received: {entity!r:.100} in text {index}, which "
            f"has {len(text)} characters."
        )
    start, end, label = entity
    part = text[start:end]
    return end - len(part.lstrip()), start + len(part.rstrip()), label
