"""The forty encoders that people download most load, give the reference's numbers, and answer."""

import pathlib
import re
from typing import NamedTuple

import keras
import numpy as np
import pytest
import safetensors.torch
import torch
import transformers
from checks import assert_close, call, transformers_outputs
from forty import FORTY, QUERY, TEXTS, write_encoder

import bert_keras
from bert_keras.answers.classes import sigmoid, softmax
from bert_keras.models.backbone import Backbone
from bert_keras.presets.presets import open_preset

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("shared_backbones")]
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
# What the documentation calls a family -> the class of its backbone.
FAMILIES = {"BERT": "Bert", "RoBERTa": "Roberta", "XLM-R": "Roberta", "MPNet": "MPNet"}
FAMILIES |= {"NomicBERT": "NomicBert", "DistilBERT": "DistilBert", "ModernBERT": "ModernBert"}
FAMILIES |= {"DeBERTa": "DebertaV2"}
# Why a checkpoint is refused.
REASONS = {
    "facebook/bart-large-mnli": "A model with a decoder",
    "jinaai/jina-embeddings-v3": "Jina's LoRA.*'hf://jinaai/jina-embeddings-v3-hf'",
}
EACH = ("/all-MiniLM-L6-v2", "/ms-marco-MiniLM-L6-v2", "/bert-base-NER", "/bert-base-chinese")


class Row(NamedTuple):
    """A row of the documentation's table."""

    number: int
    task: str
    family: str


def their_outputs(model, tokenizer, *columns, **options):
    tokens = tokenizer(*columns, padding=True, return_tensors="pt", **options)
    with torch.no_grad():
        output = model(**tokens)
    return tokens, output


def pooled(encoder, tokens, vectors):
    """Returns what sentence-transformers makes of the vectors of tokens."""
    mask = tokens["attention_mask"][..., None].float()
    is_first = encoder.sentences.get("pooling") == "cls"
    found = vectors[:, 0] if is_first else (vectors * mask).sum(1) / mask.sum(1)
    if "Normalize" in encoder.sentences.get("modules", ()):
        found = torch.nn.functional.normalize(found, dim=-1)
    return found.numpy()


def check_embedder(task, encoder, model, tokenizer):
    for name, prompt in {"": "", **encoder.prompts}.items():
        texts = [f"{prompt}{text}".strip() for text in TEXTS]
        tokens, output = their_outputs(model, tokenizer, texts)
        expected = pooled(encoder, tokens, output.last_hidden_state)
        assert_close(task.embed(TEXTS, name), expected, 1e-5)
    hit = task.semantic_search(TEXTS[1], TEXTS)[0]
    assert hit["text"] in TEXTS


def check_reranker(task, encoder, model, tokenizer):
    output = their_outputs(model, tokenizer, [QUERY] * len(TEXTS), TEXTS)[1]
    activation = encoder.keys.get("sentence_transformers", {}).get("activation_fn", "Sigmoid")
    logits = output.logits[:, 0].numpy()
    expected = logits if activation.endswith("Identity") else sigmoid(logits)
    assert_close(task.score(QUERY, TEXTS), expected, 1e-5)
    assert task.rank(QUERY, TEXTS)[0]["index"] == np.argmax(logits)


def check_classifier(task, encoder, model, tokenizer):
    columns = ([QUERY] * len(TEXTS), TEXTS) if encoder.pairs else (TEXTS,)
    logits = their_outputs(model, tokenizer, *columns)[1].logits.numpy()
    ours = columns if encoder.pairs else TEXTS
    assert_close(task.predict(ours, verbose=0), logits, 1e-5)
    answers = [answer["label"] for answer in task.classify(ours)]
    assert answers == [encoder.labels[i] for i in logits.argmax(-1)]


def outputs_of_tokens(task, tokenizer, tokens):
    """Returns what a task computes from the reference's tokens, which must be its own."""
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids"}
    names = {ours: names[ours] for ours in names if ours in task.backbone.input_names}
    inputs = {ours: tokens[theirs] for ours, theirs in names.items() if theirs in tokens}
    inputs = {ours: array.numpy().astype("int32") for ours, array in inputs.items()}
    ids = [task.tokenizer.encode(text).ids for text in TEXTS]
    for row, found in zip(inputs["token_ids"], ids, strict=True):
        assert row[: len(found)].tolist() == found
    return inputs | {"padding_mask": tokens["attention_mask"].numpy()}


def check_tagger(task, encoder, model, tokenizer):
    tokens, output = their_outputs(model, tokenizer, TEXTS)
    inputs = outputs_of_tokens(task, tokenizer, tokens)
    mask = inputs["padding_mask"].astype(bool)
    found = keras.ops.convert_to_numpy(call(task, inputs))
    assert_close(found[mask], output.logits.numpy()[mask], 1e-5)
    assert list(task.label_names) == encoder.labels and len(task.tag(TEXTS)) == len(TEXTS)


def check_masked_lm(task, encoder, model, tokenizer):
    tokens, output = their_outputs(model, tokenizer, TEXTS)
    inputs = outputs_of_tokens(task, tokenizer, tokens)
    mask = inputs["padding_mask"].astype(bool)
    places = np.tile(np.arange(mask.shape[1], dtype="int32"), (len(mask), 1))
    found = keras.ops.convert_to_numpy(call(task, inputs | {"mask_positions": places}))
    logits = output["prediction_logits" if "prediction_logits" in output else "logits"]
    assert_close(found[mask], logits.numpy()[mask], 2e-5)  # Sums in another order.
    text = f"the {tokenizer.mask_token} town"
    best = task.fill_mask(text, top_k=1)[0]
    tokens, output = their_outputs(model, tokenizer, [text])
    logits = output["prediction_logits" if "prediction_logits" in output else "logits"]
    row = logits[0, tokens["input_ids"][0] == tokenizer.mask_token_id][0]
    assert best[0][1] == pytest.approx(float(softmax(row.numpy()).max()), abs=1e-5)


def check_sparse(task, encoder, model, tokenizer):
    tokens, output = their_outputs(model, tokenizer, TEXTS)
    mask = tokens["attention_mask"][..., None].bool()
    logits = output.logits.masked_fill(~mask, 0.0).clamp(min=0).amax(1)
    assert_close(task.embed(TEXTS).toarray(), logits.log1p().numpy(), 1e-5)
    token, weight = task.token_weights(TEXTS[0], top_k=1)[0]
    assert tokenizer.convert_tokens_to_ids(token) == int(logits[0].argmax())
    assert weight == pytest.approx(float(logits[0].max().log1p()), abs=1e-5)


def check_late_interaction(task, encoder, model, tokenizer):
    kernel = safetensors.torch.load_file(f"{tokenizer.name_or_path}/model.safetensors")
    ids = tokenizer(TEXTS[1])["input_ids"]
    ids.insert(1, tokenizer.convert_tokens_to_ids("[unused1]"))
    states = transformers_outputs(model, {"token_ids": [ids]}).last_hidden_state
    vectors = states[0] @ kernel["linear.weight"].T
    expected = torch.nn.functional.normalize(vectors, dim=-1).numpy()
    found = task.embed(TEXTS)
    # Sums in another order; to normalize a short vector magnifies its roundings.
    assert_close(found[1], expected, 2e-5)
    assert np.argmax(task.score(TEXTS[1], found)) in range(3)


CHECKS = {
    "TextEmbedder": check_embedder,
    "Reranker": check_reranker,
    "TextClassifier": check_classifier,
    "TokenClassifier": check_tagger,
    "MaskedLM": check_masked_lm,
    "SparseTextEmbedder": check_sparse,
    "MultiVectorEmbedder": check_late_interaction,
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(x, marks=[pytest.mark.each_backend] * f"/{x}".endswith(EACH))
        for x in FORTY
        # `tests/tasks/test_zero_shot_tagger.py` compares a GLiNER with its own package.
        if FORTY[x].task in CHECKS
    ],
)
def test_it_loads_and_answers_with_the_references_numbers(name, tmp_path):
    encoder = FORTY[name]
    model = write_encoder(encoder, tmp_path)
    task = getattr(bert_keras, encoder.task).from_preset(tmp_path)
    positions = open_preset(tmp_path).num_positions(type(task.backbone))
    assert positions == task.backbone.max_sequence_length
    # Nothing in its folder says that it keeps case, but the vocabulary shows it.
    options = {"do_lower_case": False} if encoder.tokenizer == "vocab.txt" else {}
    # With the config in hand, nobody is asked whether to run the code that config.json names.
    options["config"] = model.config
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path, **options)
    CHECKS[encoder.task](task, encoder, model, tokenizer)
    assert type(task.backbone).__name__ == f"{FAMILIES[documented('en')[name].family]}Backbone"


@pytest.mark.parametrize("name", REASONS)
def test_one_that_is_no_encoder_or_another_task_is_refused_and_the_error_says_why(name, tmp_path):
    write_encoder(FORTY[name], tmp_path)
    for cls in (Backbone, bert_keras.TextEmbedder, bert_keras.TextClassifier):
        with pytest.raises((ValueError, FileNotFoundError), match=f"(?s){REASONS[name]}"):
            cls.from_preset(tmp_path)


def documented(language):
    """Returns the rows of the documentation's table by the names of the checkpoints."""
    text = (DOCS / language / "start/forty_encoders.md").read_text(encoding="utf-8")
    line = r"(?:(?P<task>\w+)\.from_preset\(\"hf://)?(?P<name>[^`\"]+)(?:\"\))?"
    rows = re.finditer(rf"(?m)^\| (?P<number>\d+) \| `{line}` \| (?P<family>\S+) \| .+ \|$", text)
    return {row["name"]: Row(int(row["number"]), row["task"] or "", row["family"]) for row in rows}


def test_the_documentation_shows_the_table_and_at_least_36_load():
    expected = [(name, encoder.number, encoder.task) for name, encoder in FORTY.items()]
    english = documented("en")
    assert sorted((name, row.number, row.task) for name, row in english.items()) == sorted(expected)
    assert documented("zh") == english
    assert {encoder.number for encoder in FORTY.values()} == set(range(1, 41))
    refused = {name for name, encoder in FORTY.items() if not encoder.task}
    assert refused == set(REASONS) and len(refused) <= 4
