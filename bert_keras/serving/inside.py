"""Explanations of answers: the words that speak for a label, and attention between words."""

from bert_keras.plots import as_written, attention_of
from bert_keras.serving.rows import Refusal
from bert_keras.tasks.long_text_classifier import LongTextClassifier
from bert_keras.tasks.saliency import integrated_gradients
from bert_keras.tasks.text_classifier import TextClassifier

# Tokens of a row that is looked into: gradients take the memory of several passes, and attention
# grows by the square.
MOST_TOKENS = 256


def instruments_of(model):
    """Returns what a model can show, a dict by the names of `INSTRUMENTS`.

    A program has neither gradients nor attention: the task that it was made of shows them.
    `"saliency"` goes with the labels' names, or their numbers as str, `"attention"` with the
    numbers of layers and of heads.
    """
    model = _whole(model)
    found, backbone = {}, getattr(model, "backbone", None)
    if isinstance(model, TextClassifier) and not isinstance(model, LongTextClassifier):
        found["saliency"] = {"labels": [str(label) for label in _labels(model)]}
    if hasattr(backbone, "num_layers") and hasattr(backbone, "num_heads"):
        found["attention"] = {"layers": backbone.num_layers, "heads": backbone.num_heads}
    return found


def saliency(model, row, target=None):
    """Returns what each word of a row adds to the logit of a label, see `integrated_gradients`.

    Args:
        model: a `TextClassifier`.
        row: tuple of one or two str.
        target: str, the label; `None` for the likeliest.
    """
    model = _whole(model)
    _check_tokens(model, row)
    if target is not None:
        target = {str(label): label for label in _labels(model)}[target]
    baseline = "mask" if model.tokenizer.mask_token is not None else "pad"
    texts = row if len(row) == 2 else row[0]
    found = integrated_gradients(model, texts, target, baseline=baseline, steps=30, batch_size=4)
    words = []
    for (text, goes_on), score in zip(as_written(found.tokens), found.scores.tolist(), strict=True):
        if goes_on and words:
            words[-1]["text"] += text
            words[-1]["score"] += score
        else:
            words.append({"text": text, "score": score})
    return {
        "target": str(found.target),
        "logit": found.logit,
        "baseline_logit": found.baseline_logit,
        "words": words,
    }


def attention(model, row, layer, head=None):
    """Returns the tokens of a row, and for each how much it looks at the others.

    Args:
        model: a task with a backbone.
        row: tuple of one or two str.
        layer: int, from 0.
        head: int, from 0, or `None` for the mean over the heads.
    """
    model = _whole(model)
    _check_tokens(model, row)
    tokens, weights = attention_of(model, *row)
    weights = weights[layer].mean(0) if head is None else weights[layer, head]
    return {"tokens": tokens, "weights": weights.round(4).astype(float).round(4).tolist()}


INSTRUMENTS = {"saliency": saliency, "attention": attention}


def _whole(model):
    """Returns the task of which a program was made, where it is there."""
    return getattr(model, "whole", model)


def _labels(classifier):
    return classifier.label_names or range(classifier.num_classes)


def _check_tokens(model, row):
    preprocessor = model.preprocessor
    ids = preprocessor.tokenize(*([text] for text in row))
    [length] = preprocessor.packed_lengths(*ids)
    if length > MOST_TOKENS:
        raise Refusal(413, f"row: at most {MOST_TOKENS} tokens are drawn. Received: {length}.")
