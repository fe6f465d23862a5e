"""What is fuzzed: each reader, with small files of our own writers to start from."""

import functools
import json
import shutil
from typing import NamedTuple

import keras
import numpy as np
from files import write_json
from foreign import (
    WIDTH,
    add_keras_hub_classifier,
    bert_of_transformers,
    set_tf1_head,
    write_keras_hub,
    write_tf1,
)
from small_tokenizers import byte_pair_tokenizer, sentence_pieces
from tiny import LETTERS, VOCABULARY, tiny_backbone, tiny_classifier

import bert_keras
from bert_keras import corpora, datasets
from bert_keras.cli.text_rows import read_rows
from bert_keras.corpora import PretrainingBatches, create_pretraining_data
from bert_keras.models.backbone import Backbone
from bert_keras.presets.safetensors_io import read_safetensors
from bert_keras.presets.torch_pickle import read_torch
from bert_keras.tokenizers.tokenizer import Tokenizer
from bert_keras.training.training_checkpoint import TrainingCheckpoint

TEXTS = ("a b c", "H\u00e9d, e!", "[MASK] \u4e2d\u6587 a", "x" * 40)


class Target(NamedTuple):
    """A reader and what it reads.

    Fields:
        write: function of an empty folder that writes valid files.
        read: function of the folder that reads everything in them.
    """

    write: callable
    read: callable


def _task(**options):
    keras.utils.set_random_seed(0)
    return tiny_classifier(tiny_backbone(), **options)


def _use_tokenizer(folder):
    tokenizer = Tokenizer.load(folder)
    for text in TEXTS:
        tokenizer.detokenize(tokenizer.encode(text, text).ids)
    tokenizer(list(TEXTS))


def _load_classifier(folder):
    bert_keras.TextClassifier.from_preset(folder).predict(list(TEXTS[:2]), verbose=0)


def _write_keras(folder):
    _task().save(folder / "model.keras")


def _read_keras(folder):
    bert_keras.load_model(folder / "model.keras").predict(list(TEXTS[:2]), verbose=0)


def _write_torch(folder):
    import torch

    tensors = {"whole": torch.ones(3, 4, dtype=torch.float16), "view": torch.arange(12.0)[4:]}
    for name in ("zip", "legacy"):
        torch.save(tensors, folder / f"{name}.bin", _use_new_zipfile_serialization=name == "zip")


def _read_torch(folder):
    for path in folder.glob("*.bin"):
        list(read_torch(path).values())


def _write_keras_hub(folder):
    write_keras_hub(folder, bert_of_transformers())
    add_keras_hub_classifier(folder, num_classes=2)


def _write_tf1(folder):
    write_tf1(folder, bert_of_transformers())
    set_tf1_head(folder, output_weights=np.ones((2, WIDTH)), output_bias=np.ones(2))


def _write_sentence_pieces(folder):
    model = sentence_pieces(TEXTS, vocab_size=30, normalization_rule_name="identity")
    (folder / "sentencepiece.bpe.model").write_bytes(model)


def _write_byte_pair(folder):
    model = json.loads(byte_pair_tokenizer(list(TEXTS))._backend.to_str())["model"]
    write_json(folder / "vocab.json", model["vocab"])
    merges = "".join(" ".join(pair) + "\n" for pair in model["merges"])
    (folder / "merges.txt").write_text("#version: 0.2\n" + merges)


def _write_vocabulary(folder):
    bert_keras.WordPieceTokenizer(VOCABULARY).save(folder)
    (folder / "tokenizer.json").unlink()
    write_json(folder / "config.json", {"vocab_size": len(VOCABULARY)})


def _write_pretraining(folder):
    (folder / "corpus").mkdir()
    lines = [f"{a} {b} {a}" for a in LETTERS for b in LETTERS]
    (folder / "corpus" / "a.txt").write_text("\n".join(lines))
    (folder / "corpus" / "b.txt").write_text("\n".join(lines[::-1]))
    tokenizer = bert_keras.WordPieceTokenizer(VOCABULARY)
    options = {"sequence_length": 16, "sentences_per_line": True}
    create_pretraining_data(folder / "corpus", tokenizer, folder / "data", **options)
    shutil.rmtree(folder / "corpus")


def _read_pretraining(folder):
    batches = PretrainingBatches(folder / "data", batch_size=2)
    for i in range(min(3, batches.batches_per_epoch)):
        batches[i]


@functools.cache
def _compiled():
    task = _task(preprocessor=None)
    task.compile(optimizer=keras.optimizers.SGD())
    return task


def _write_training(folder):
    x, checkpoint = {"token_ids": np.ones((2, 4), int)}, TrainingCheckpoint(folder, every=1)
    _compiled().fit(x, [0, 1], batch_size=2, verbose=0, callbacks=[checkpoint])


def _read_training(folder):
    TrainingCheckpoint(folder, every=1).restore(_compiled())


def _write_adapters(folder):
    _adapted().save_adapters(folder / "adapters.safetensors")


@functools.cache
def _adapted():
    return _task(lora_rank=2, preprocessor=None)


def _read_checked_files(folder):
    for path in folder.glob("*.safetensors"):
        list(read_safetensors(path).values())


def _file(name, text, read):
    """Returns the target of a reader of one text file."""

    def write(folder):
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    return Target(write, lambda folder: read(folder / name))


_QUESTION = {"id": "1", "question": "b?", "answers": [{"text": "b", "answer_start": 2}]}
_QUESTION["is_impossible"] = False
_SQUAD = {"title": "t", "paragraphs": [{"context": "a b c", "qas": [_QUESTION]}]}
_CHOICES = {"stem": "q", "choices": [{"label": x, "text": f"t {x}"} for x in "AB"]}
_SENTENCES = datasets.ClassificationTask(
    layouts=(datasets.Layout(("text",), "label"), datasets.Layout((0,), 1)),
    label_names=("no", "yes"),
)


TARGETS = {
    "keras": Target(_write_keras, _read_keras),
    "own_preset": Target(lambda folder: _task().save_to_preset(folder), _load_classifier),
    "hugging_face": Target(lambda folder: _task().export_to_huggingface(folder), _load_classifier),
    "keras_hub": Target(_write_keras_hub, _load_classifier),
    "tf1": Target(_write_tf1, _load_classifier),
    "backbone": Target(
        lambda folder: tiny_backbone().export_to_huggingface(folder), Backbone.from_preset
    ),
    "safetensors": Target(
        lambda folder: _task().backbone.save_to_preset(folder) or (folder / "config.json").unlink(),
        _read_checked_files,
    ),
    "torch_pickle": Target(_write_torch, _read_torch),
    "tokenizer_json": Target(bert_keras.WordPieceTokenizer(VOCABULARY).save, _use_tokenizer),
    "byte_pair_json": Target(byte_pair_tokenizer(list(TEXTS)).save, _use_tokenizer),
    "vocabulary": Target(_write_vocabulary, _use_tokenizer),
    "merges": Target(_write_byte_pair, _use_tokenizer),
    "sentence_pieces": Target(_write_sentence_pieces, _use_tokenizer),
    "pretraining": Target(_write_pretraining, _read_pretraining),
    "training": Target(_write_training, _read_training),
    "adapters": Target(
        _write_adapters, lambda folder: _adapted().load_adapters(folder / "adapters.safetensors")
    ),
    "csv": _file(
        "a.csv",
        'text,label\r\n"a, ""b""",0\r\nc,1\r\n',
        lambda path: list(datasets.read_records(path)),
    ),
    "tsv": _file("a.tsv", "a b\t0\nc\t1\n", lambda path: datasets.read_examples(path, _SENTENCES)),
    "json_lines": _file(
        "a.jsonl",
        '{"text": "a", "label": 0}\n{"text": "b", "label": 1}\n',
        lambda path: datasets.read_examples(path, _SENTENCES),
    ),
    "conll": _file("a.conll", "a B-X\nb O\n\n# c\nd I-X\n", datasets.read_conll),
    "conllu": _file("a.conllu", "1\ta\t_\tNOUN\n2-3\tbc\t_\t_\n", datasets.read_conll),
    "squad": _file("a.json", json.dumps({"data": [_SQUAD]}), datasets.read_squad),
    "multiple_choice": _file(
        "a.jsonl",
        json.dumps({"question": _CHOICES, "answerKey": "A"}) + "\n",
        datasets.read_multiple_choice,
    ),
    "documents": _file("a.txt", "a b\n\nc\n", lambda path: list(corpora.read_documents(path))),
    "command_json": _file(
        "a.jsonl",
        '{"text": "a", "pair": ["b"]}\n',
        lambda path: list(read_rows(str(path), "jsonl", ("text", "pair"), has_list=True)),
    ),
    "command_csv": _file(
        "a.csv",
        "text,pair\na,b\n",
        lambda path: list(read_rows(str(path), "csv", ("text", "pair"))),
    ),
}


def folder_of(path):
    """Returns the bytes of all files below a folder, by path."""
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}
