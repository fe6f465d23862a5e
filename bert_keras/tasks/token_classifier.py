"""Tags for words: named entities, parts of speech, word segmentation."""

from collections.abc import Sequence
from typing import Any, Unpack

import keras
import numpy as np
from keras import ops

from bert_keras.answers.entity_tags import entity_readings, find_odd_tags
from bert_keras.answers.tagged_texts import (
    PieceLogitsAnswerer,
    TagAnswerer,
    as_sentences,
    named_tags,
    place_words,
)
from bert_keras.answers.viterbi import best_tags
from bert_keras.checks import (
    as_array,
    as_column,
    check_choice,
    check_int,
    check_not_empty,
    check_same_length,
    check_shape,
    is_column,
    is_int,
    raise_at_first,
    refuse_smoothing,
)
from bert_keras.heads.token import TokenHead
from bert_keras.metrics.entities import entity_scores
from bert_keras.metrics.label_kinds import LabelKind
from bert_keras.models.backbone import Backbone
from bert_keras.preprocessing.ragged import Ragged
from bert_keras.preprocessing.text_preprocessor import TextPreprocessor
from bert_keras.tasks.encoded_labels import as_classes, check_label_names, shares, take_weights
from bert_keras.tasks.task import Task
from bert_keras.tasks.validation import head_for, head_settings
from bert_keras.training.losses import PrecomputedLoss, SparseCrossentropy
from bert_keras.types import (
    Inputs,
    Outputs,
    PredictOptions,
    TaskOptions,
    Tensor,
    Texts,
)

# The transitions of a conditional random field start at 0 and must reach about 1 within the few
# hundred steps of a fine-tuning. Adam moves a weight by about its learning rate a step, so at the
# encoder's rate they would stay where they are.
CRF_LEARNING_RATE_MULTIPLIER = 100.0


@keras.saving.register_keras_serializable(package="bert_keras")
class TokenClassifier(Task):
    """Gives each word of a sentence a tag: named entities, parts of speech.

    Dropout and a dense layer on each token, section 5.3 of the paper. The first piece of a word has
    its tag; its other pieces, `[CLS]`, `[SEP]` and padding have weight 0.

    Sentences are lists of words (for Chinese, of characters), or plain texts, which the tokenizer
    splits at white space and around punctuation. Where a script puts no spaces between words, and
    the tokenizer does not separate them either, every token is a word. Sentences longer than the
    preprocessor's `max_length` are read in overlapping windows, in training too: each word counts
    once, in the window where it has the most context. `fit(class_weight={number: float})` gives
    words with rare tags more weight; with a CRF, sentences that contain them, and weights must be
    above 0.

    With `crf=True` the tags of a sentence are scored together by a `LinearChainCRF` over its words.
    The loss is then the negative log-likelihood, divided by the number of words. It needs the
    field's weights, while a Keras loss sees only labels and outputs. A loss object that holds the
    field would save it a second time in a `.keras` file; a layer that takes labels would make them
    inputs of `predict`. Therefore the model's outputs are the emissions, and the task overrides
    `compute_loss`. In training, each window over a sentence longer than `max_length` is a chain of
    its own, over the words that count there: transitions between two windows are not learned from.
    Decoding joins the windows first: the best tags, and their probabilities, are those of one chain
    over the whole sentence.

    Args:
        backbone: a `Backbone`.
        num_classes: int, number of tags.
        preprocessor: a `TextPreprocessor`, or `None` for ready inputs only.
        dropout: float, rate before the dense layer; `None` takes the backbone's.
        label_names: list of `num_classes` str, such as `"B-PER"`, or `None` to use numbers.
        crf: bool, whether a conditional random field scores whole sequences of tags.
        stride: int, pieces between the beginnings of two windows over a long sentence; `None` for
            half a window.
        frozen: `None`, `"embeddings"`, `"backbone"`, or an int, see `Task`.
        **kwargs: `name`, `dtype`, `trainable`, see `keras.Model`.

    Call arguments:
        inputs: dict of `(batch, seq_len)`, see `bert_keras.inputs`. Labels are int
            `(batch, seq_len)`, or float `(batch, seq_len, num_classes)`, a probability of each tag;
            positions without a label have `sample_weight` 0. Without
            `sample_weight` every token that is not padding counts.

    Returns:
        float32, `(batch, seq_len, num_classes)`, logits, or the emissions of the field.

    Raises:
        ValueError: an argument is out of range.

    Example:
    ```python
    names = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    tagger = bert_keras.TokenClassifier.from_preset(
        "minilm_l6_en_uncased", num_classes=len(names), label_names=names
    )
    tagger.fit([["Ada", "Lovelace", "lived", "in", "London"]],
               [["B-PER", "I-PER", "O", "O", "B-LOC"]], epochs=3)
    tagger.tag("Ada Lovelace lived in London.")
    tagger.save("entities.keras")
    ```

    Reference:
        [Devlin et al., 2019](https://arxiv.org/abs/1810.04805), section 5.3.
    """

    head_config_keys = ("num_classes", "crf")
    answerers = (TagAnswerer, PieceLogitsAnswerer)
    form = "sentences"
    label_per_token = True

    def __init__(
        self,
        backbone: Backbone,
        num_classes: int,
        preprocessor: TextPreprocessor | None = None,
        dropout: float | None = None,
        label_names: Sequence[str] | None = None,
        crf: bool = False,
        stride: int | None = None,
        **kwargs: Unpack[TaskOptions],
    ) -> None:
        super().__init__(backbone, preprocessor=preprocessor, **kwargs)
        self.num_classes = check_int("num_classes", num_classes, 2, 2**16)
        self.label_names = check_label_names(label_names, num_classes)
        self.crf = bool(crf)
        if crf:
            self.learning_rate_multipliers = (("head/crf/", CRF_LEARNING_RATE_MULTIPLIER),)
        self.stride = None if stride is None else check_int("stride", stride)
        _, options, self.dropout = head_settings(self, dropout=dropout)
        options |= {"dropout": self.dropout, "crf": self.crf}
        options["num_outputs"] = self.num_classes
        self.head = head_for(self, TokenHead, "layer_norm_epsilon", **options)

    def call(self, inputs, training=None):
        outputs = self.backbone_outputs(inputs, training=training)
        return self.head_outputs(outputs, inputs, training)

    def head_outputs(
        self, outputs: Outputs, inputs: Inputs, training: bool | None = None
    ) -> Tensor:
        """Returns the logits for a backbone's outputs."""
        return ops.cast(self.head(outputs, training=training), "float32")

    # Loss

    def compile(self, optimizer: Any = "auto", loss: Any = "auto", **kwargs: Any) -> None:
        """Configures training, see `Task.compile`; with a CRF the loss is its own.

        Args:
            optimizer: see `Task.compile`.
            loss: see `Task.compile`.
            **kwargs: see `Task.compile`.

        Raises:
            ValueError: a loss is given for a model with a CRF.
        """
        if self.crf:
            advice = (
                "With crf=True it is the field's negative log-likelihood. Make the task with "
                "crf=False for another loss."
            )
            check_choice("loss", loss, ("auto",), advice)
        super().compile(optimizer, loss, **kwargs)

    def default_loss(self, label_smoothing):
        """Returns cross-entropy per token, or the mean of the field's losses."""
        if not self.crf:
            return SparseCrossentropy(label_smoothing=label_smoothing)
        refuse_smoothing(label_smoothing, "A conditional random field has no labels to smooth")
        return PrecomputedLoss(reduction="mean_with_sample_weight")

    def default_metrics(self):
        """Returns the accuracy of tags; with a CRF, of the emissions before decoding."""
        name = "emission_accuracy" if self.crf else "accuracy"
        return [keras.metrics.SparseCategoricalAccuracy(name)]

    @property
    def label_kind(self):
        """What the labels are, see `LabelKind`."""
        return LabelKind("classes", self.num_classes, per_token=True)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the loss, see `keras.Model.compute_loss` and this class's docstring.

        With a CRF there is a loss per sentence, divided by its words. Averaged by the sentences'
        weights, these are a mean over words.
        """
        if self.crf:
            weights = self.batch_weights(x, y, sample_weight)
            weights = ops.ones_like(y_pred[..., 0]) if weights is None else weights
            weights = ops.cast(weights, "float32")
            is_in_chain = weights > 0
            num_words = ops.maximum(ops.sum(ops.cast(is_in_chain, "float32"), axis=-1), 1.0)
            losses = -self.head.crf.log_likelihood(y_pred, y, is_in_chain) / num_words
            y, y_pred, sample_weight = losses, losses, ops.sum(weights, axis=-1)
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    # Labels and inputs

    def encode_labels(self, labels):
        """Returns the labels of ready inputs as the array that the loss takes.

        Args:
            labels: int `(batch, seq_len)`, or float `(batch, seq_len, num_classes)`.

        Returns:
            int32 `(batch, seq_len)`, or float32 `(batch, seq_len, num_classes)`.

        Raises:
            ValueError: the shape does not fit, or a label is not a class.
        """
        advice = "Fill up rows with label 0, and pass `sample_weight` 0 there."
        labels = as_array("Labels of ready inputs", labels, advice)
        if labels.ndim == 3 and labels.dtype.kind in "iuf":
            # A position without a label, of `sample_weight` 0, may have zeros.
            rows = labels.reshape(-1, labels.shape[-1]).astype("float32")
            exists = rows.any(axis=1)
            rows[exists] = self._shares(rows[exists])
            return rows.reshape(labels.shape)
        check_shape("Labels of ready inputs", labels, ("num_examples", "seq_len"), "iu")
        count = self.num_classes
        raise_at_first(
            (labels < 0) | (labels >= count),
            labels,
            f"Labels must be the ints 0 to {count - 1}, num_classes={count}",
            "Positions without a label have label 0 and sample_weight 0.",
        )
        return labels.astype("int32")

    def check_class_weight(self, class_weight):
        """Raises `ValueError` if weights of tags do not fit the task."""
        is_dict = isinstance(class_weight, dict)
        if self.crf and is_dict and not all(weight > 0 for weight in class_weight.values()):
            raise ValueError(
                "With a CRF weights of tags must be above 0, since a word of weight 0 is no part "
                "of its sentence's chain, and its neighbours would follow one another. Received: "
                f"{class_weight}. Give the tag a small weight, such as 0.01."
            )

    def encode_texts(self, x, y=None, sample_weight=None, training=False):
        """Returns sentences as rows of windows, see `Task`.

        Args:
            x: sentences, see the class.
            y: for each sentence a list with a tag per word: a name, a number, or `num_classes`
                probabilities.
            sample_weight: float `(num_sentences,)`, or `None`.
            training: bool.
        """
        sentences = as_sentences(x)
        rows = self.answerer().encode(sentences)
        if not training:
            return rows
        labels = self._tag_indices(self._words_of(sentences), y)
        check_not_empty(labels, "There must be words to train or to measure on")
        words = rows.words.values
        weights = (words >= 0).astype("float32")
        if sample_weight is not None:
            window_weights = take_weights(sample_weight, rows.sentences)
            weights *= np.repeat(window_weights, rows.words.lengths)
        # Where there is no word, index -1 finds the 0 at the end.
        values = np.append(labels, np.zeros_like(labels[:1]), axis=0)[words]
        flat = Ragged.from_flat
        return rows.labelled(flat(values, rows.words.lengths), flat(weights, rows.words.lengths))

    def _words_of(self, sentences):
        """Returns sentences as lists of words."""
        placed = place_words(self.preprocessor.tokenizer, sentences)
        return [[text[start:end] for start, end in spans] for text, spans in placed]

    def _tag_indices(self, sentences, tags):
        """Returns all sentences' tags, checked one by one.

        int32 `(num_words,)`, or float32 `(num_words, num_classes)` if some are probabilities.
        """
        names = self.label_names or ()
        numbers = {name: number for number, name in enumerate(names)}
        numbers |= {number: number for number in range(self.num_classes)}
        flat, are_shares = [], False
        rows = tags.tolist() if hasattr(tags, "tolist") else as_column(tags, "y")
        for index, (words, row) in enumerate(zip(sentences, rows, strict=True)):
            row = as_column(row, f"y[{index}]", " of tags, one for each word")
            if len(row) != len(words):
                raise ValueError(
                    f"Each word needs one tag. Received {len(words)} words and {len(row)} tags in "
                    f"sentence {index}: {words[:8]} with {row[:8]}."
                )
            for place, tag in enumerate(row):
                number = numbers.get(tag) if isinstance(tag, str) or is_int(tag) else None
                if number is None and is_column(tag):
                    number, are_shares = tag, True
                if number is None:
                    raise ValueError(self._unknown_tag(tag, words[place], place, index))
                flat.append(number)
        if not are_shares:
            return np.array(flat, "int32")
        one_hot = np.eye(self.num_classes)
        return self._shares([one_hot[tag] if is_int(tag) else tag for tag in flat])

    def _shares(self, rows):
        """Returns rows with a probability of each tag as an array, after checking them."""
        if self.crf:
            raise ValueError(
                "With crf=True each word needs one tag, since the field scores whole sequences. "
                "Received probabilities. Make the task with crf=False."
            )
        rule = f"A word's probabilities must be {self.num_classes}, one of each tag"
        raise_at_first([np.shape(row) != (self.num_classes,) for row in rows], rows, rule)
        return shares(np.array(rows, "float32"))

    def _unknown_tag(self, tag, word, place, index):
        received = f"Received {tag!r} for the word {word!r}, number {place} of sentence {index}."
        if isinstance(tag, str) and self.label_names is None:
            return (
                f"Tags given by name need `label_names`. {received} Pass label_names=[...] when "
                "making the task."
            )
        names, last = list(self.label_names or ()), self.num_classes - 1
        return f"Every tag must be one of {names} or an int from 0 to {last}. {received}"

    # Answers

    def predict_tags(
        self, sentences: str | Texts, **options: Unpack[PredictOptions]
    ) -> list[list[str]] | list[list[int]]:
        """Returns the tags of each sentence's words.

        Args:
            sentences: see the class.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            For each sentence a list with one tag a word: its name, or its number where the task
            has no `label_names`.
        """
        self.check_options(options, self.predict_tags)
        sentences = as_sentences(sentences)
        logits = self.predict(sentences, **{"verbose": 0, **options}) if sentences else []
        return [named_tags(tags, self.label_names) for tags in best_tags(logits, self._chain())]

    def tag(self, sentences: str | Texts, **options: Unpack[PredictOptions]) -> Any:
        """Returns the words of sentences with their tags, and the entities that these mark.

        Args:
            sentences: a str, or a column of str or of word lists, see the class.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.

        Returns:
            For a str one dict; for a column, a list of dicts:

            - `"text"`: the str itself; for a word list, its words joined by spaces, or by nothing
              where each is a single character.
            - `"words"`: list of `(word, tag)`.
            - `"entities"`: list of dicts `{"type": str, "text": str, "start": int, "end": int,
              "score": float}`, where `text[start:end]` is the entity's text and `score` the mean of
              its words' probabilities. Empty for tags that mark no entities, such as parts of
              speech. Sequences that break the scheme are read as conlleval reads them: `I-PER`
              after `O` starts an entity. A tag such as `[PAD]` among entity tags is read as `O`.
              Beside `O`, tags without a prefix (`PER`) are read as `I-PER`, and `B_PER` as `B-PER`.

        Example:

        ```python
        tagger.tag("Ada Lovelace lived in London.")["entities"]
        # [{"type": "PER", "text": "Ada Lovelace", "start": 0, "end": 12, "score": 0.99},
        #  {"type": "LOC", "text": "London", "start": 22, "end": 28, "score": 0.98}]
        ```
        """
        return self.ask("tag", sentences, **options)

    def answer_settings(self):
        """Returns the settings of `TagAnswerer`."""
        crf = [weights.tolist() for weights in self._chain() or ()]
        return {**super().answer_settings(), "crf": crf}

    def _chain(self):
        """Returns the field's weights as arrays, see `answers.viterbi.Chain`, or `None`."""
        if not self.crf:
            return None
        field = self.head.crf
        return tuple(map(ops.convert_to_numpy, (field.start, field.end, field.transitions)))

    def _entity_tags(self):
        """Returns the entity tag that each tag index is read as; empty if tags mark no entities."""
        names = self.label_names or ()
        if odd := find_odd_tags(names):
            raise ValueError(
                "A tag of entities must be O, or a prefix and a type, such as B-PER. Received: "
                f"{odd[0]!r} among the label_names {list(names[:8])}. Correct the tags. If they "
                "are meant to be so, replace them in what `predict_tags` returns, and score that "
                "with `metrics.entity_scores`."
            )
        return list(entity_readings(names).values())

    def evaluate_tags(
        self,
        sentences: str | Texts,
        tags: Sequence[Sequence[str | int]],
        *,
        predicted: Sequence[Sequence[str | int]] | None = None,
        **options: Unpack[PredictOptions],
    ) -> dict[str, Any]:
        """Returns how well whole sentences are tagged, after decoding, over all their words.

        Args:
            sentences: see the class.
            tags: for each sentence a list of tags, by name or number.
            batch_size: int, 32 by default.
            verbose: see `keras.Model.predict`.
            predicted: what `predict_tags(sentences)` returned, or `None` to compute it.

        Returns:
            Dict with `accuracy`, the share of words whose tag is right; where the tags mark
            entities, also what `bert_keras.metrics.entity_scores` returns: `precision`, `recall`,
            `f1` and others of whole entities.

        Raises:
            TypeError, ValueError: sentences and tags do not fit each other; one of `label_names`
                marks no entity though most do (`"0"` for `"O"`). Before any compute.
        """
        self.check_options(options, self.evaluate_tags)
        names = self._entity_tags()
        self.check_has_preprocessor()
        sentences = as_sentences(sentences)
        words = self._words_of(sentences)
        check_same_length("Each sentence needs a list of tags", sentences=words, lists=tags)
        true = check_not_empty(self._tag_indices(words, tags), "There must be words to measure on")
        if predicted is None:
            predicted = self.predict_tags(sentences, **options)
        true, found = as_classes(true), as_classes(self._tag_indices(words, predicted))
        scores = {"accuracy": float(np.mean(found == true))}
        if names:
            ends = np.cumsum([len(sentence) for sentence in words])[:-1]
            columns = (np.split(column, ends) for column in (true, found))
            tags = [[named_tags(x, names) for x in rows] for rows in columns]
            scores |= entity_scores(*tags)
        return scores
