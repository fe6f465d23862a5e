"""What happens inside a model: the words that speak for a label, and attention."""

from bert_keras.answers.prompts import prompt_text
from bert_keras.plots import as_written, attention_of
from bert_keras.serving.rows import check
from bert_keras.tasks.reranker import Reranker
from bert_keras.tasks.saliency import has_saliency, integrated_gradients

# The largest number of tokens in a row: gradients take the memory of several passes, and attention
# grows with the square.
MOST_TOKENS = 256


def instruments_of(model):
    """Returns which of `INSTRUMENTS` a model has, a dict by name.

    `"saliency"` has the labels' names, or their numbers as str, and `"attention"` the numbers of
    layers and heads. An exported program has neither gradients nor attention, so the task that it
    was made from shows them.
    """
    model = _task_of(model)
    instruments, backbone = {}, getattr(model, "backbone", None)
    if has_saliency(model):
        instruments["saliency"] = {"labels": [str(label) for label in _labels(model)]}
    if hasattr(backbone, "num_layers") and hasattr(backbone, "num_heads"):
        instruments["attention"] = {"layers": backbone.num_layers, "heads": backbone.num_heads}
    return instruments


def saliency(model, row, target=None):
    """Returns what each word of a row adds to the logit of a label. See `integrated_gradients`.

    Args:
        model: a `TextClassifier`.
        row: tuple of one or two str.
        target: str, the label; `None` for the likeliest.
    """
    model = _task_of(model)
    _check_tokens(model, row)
    if target is not None:
        target = {str(label): label for label in _labels(model)}[target]
    texts = row if len(row) == 2 else row[0]
    found = integrated_gradients(model, texts, target, steps=30, batch_size=4)
    words, scores = [], found.scores.tolist()
    for (text, goes_on), score in zip(as_written(found.tokens), scores, strict=True):
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
    """Returns the tokens of a row and how much each attends to the others.

    Args:
        model: a task with a backbone.
        row: tuple of one or two str.
        layer: int, from 0.
        head: int, from 0, or `None` for the mean over the heads.
    """
    model = _task_of(model)
    _check_tokens(model, row)
    tokens, weights = attention_of(model, *_as_read(model, row))
    weights = weights[layer].mean(0) if head is None else weights[layer, head]
    return {"tokens": tokens, "weights": weights.round(4).astype(float).round(4).tolist()}


INSTRUMENTS = {"saliency": saliency, "attention": attention}


def _task_of(model):
    """Returns a task itself, or the task that a program was made from if the server has it."""
    return getattr(model, "source_task", model)


def _labels(classifier):
    return classifier.label_names or range(classifier.num_classes)


def _as_read(model, row):
    """Returns the row with the prompt that a reranker puts before the query of a pair."""
    if not isinstance(model, Reranker) or len(row) != 2:
        return row
    query, text = row
    return prompt_text(None, model.prompts, model.default_prompt) + query, text


def _check_tokens(model, row):
    preprocessor = model.preprocessor
    ids = preprocessor.tokenize(*([text] for text in _as_read(model, row)))
    [length] = preprocessor.packed_lengths(*ids)
    message = f"row: at most {MOST_TOKENS} tokens are shown. Received: {length}."
    check(length <= MOST_TOKENS, message, 413)
