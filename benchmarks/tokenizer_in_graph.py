"""Exactness and speed of BERT's tokenizer in a TensorFlow graph, beside tensorflow-text's.

    KERAS_BACKEND=tensorflow python benchmarks/tokenizer_in_graph.py \\
        --vocabulary bert-base-uncased-vocab.txt --data_dir glue_data/SST-2

Prints processor time for sentences of SST-2, and what the tokenizer adds to a SavedModel. Then for
each setting of BERT's cleaning: how many texts have the ids of `Tokenizer`, with the given
vocabulary and with one of all single characters, so that `[UNK]` hides nothing; how many pairs have
the inputs of `TextPreprocessor`; the largest difference of an exported program's logits from
`predict`; and how many of all characters, alone and between marks, become other words.
"""

import itertools
import pathlib
import statistics
import tempfile
import time

import numpy as np
import tensorflow as tf
import tensorflow_text
from absl import app, flags
from hard_texts import HARD_TEXTS, HARDER_TEXTS, mixed_texts, random_texts

import bert_keras
from bert_keras.datasets import load_glue
from bert_keras.export.inputs_in_graph import GraphPreprocessor
from bert_keras.export.tokenizer_in_graph import GraphTokenizer

FLAGS = flags.FLAGS
flags.DEFINE_string("vocabulary", None, "A vocab.txt of an uncased model.", required=True)
flags.DEFINE_string("data_dir", None, "Folder of SST-2, for the times.")
flags.DEFINE_integer("num_random", 5000, "Random strings, and as many mixed ones.")
flags.DEFINE_integer("seed", 0, "Of the draws.")
flags.DEFINE_boolean("characters", True, "Whether to try every character.")

SETTINGS = [
    dict(zip(("lowercase", "strip_accents", "split_chinese"), values, strict=True))
    for values in itertools.product((True, False), repeat=3)
]
SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def main(argv):
    kinds = {
        "hard": HARD_TEXTS + HARDER_TEXTS,
        "random": random_texts(FLAGS.num_random, FLAGS.seed),
        "mixed": mixed_texts(FLAGS.num_random, FLAGS.seed),
    }
    if FLAGS.data_dir:
        report_times()
    report_others(kinds)
    with tempfile.TemporaryDirectory() as folder:
        report_sizes(pathlib.Path(folder))
    for settings in SETTINGS:
        print(settings, flush=True)
        report_setting(settings, kinds)


def report_setting(settings, kinds):
    texts = [text for kind in kinds.values() for text in kind]
    spelling = spelling_tokenizer(texts, settings)
    for tokenizer in (bert_keras.WordPieceTokenizer(FLAGS.vocabulary, **settings), spelling):
        graph = compiled(GraphTokenizer(tokenizer))
        same = {kind: count_same(graph, tokenizer, kinds[kind]) for kind in kinds}
        print(f"  vocabulary of {tokenizer.vocabulary_size}:", same)
    preprocessor = bert_keras.TextPreprocessor(spelling, max_length=32)
    print(
        "  pairs with the same inputs:", count_same_inputs(preprocessor, texts), f"of {len(texts)}"
    )
    print("  largest difference of logits:", largest_difference(preprocessor, texts), flush=True)
    if FLAGS.characters:
        wrong, count = wrong_characters(spelling)
        print(f"  characters with other words: {len(wrong)} of {count} {wrong[:10]}", flush=True)


def spelling_tokenizer(texts, settings):
    """Returns a tokenizer with a vocabulary of all characters that cleaned texts contain."""
    cleaning = bert_keras.WordPieceTokenizer(SPECIAL_TOKENS, **settings)._backend.normalizer
    found = sorted(set("".join(map(cleaning.normalize_str, texts))))
    vocabulary = [*SPECIAL_TOKENS, *found, *(f"##{character}" for character in found)]
    return bert_keras.WordPieceTokenizer(vocabulary, **settings)


def compiled(function, count=1):
    return tf.function(function, input_signature=count * [tf.TensorSpec((None,), tf.string)])


def count_same(graph, tokenizer, texts):
    """Returns how many texts have the same ids in a graph."""
    return sum(map(list.__eq__, graph(tf.constant(texts)).to_list(), tokenizer(texts)))


def count_same_inputs(preprocessor, texts):
    """Returns how many pairs of texts have the same inputs."""
    graph, pairs = compiled(GraphPreprocessor(preprocessor), 2), texts[::-1]
    found = {name: value.numpy() for name, value in graph(texts, pairs).items()}
    wanted = preprocessor(texts, pairs)
    assert found.keys() == wanted.keys()
    return int(np.all([(found[n] == wanted[n]).all(axis=1) for n in wanted], axis=0).sum())


def classifier(preprocessor):
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 64, "intermediate_dim": 128}
    backbone = bert_keras.BertBackbone(preprocessor.tokenizer.vocabulary_size, **sizes)
    task = bert_keras.TextClassifier(backbone, num_classes=3, preprocessor=preprocessor)
    for weight in task.trainable_variables:
        # Weights large enough for a single different token to show.
        weight.assign(np.random.default_rng(0).normal(size=weight.shape, scale=0.2))
    return task


def largest_difference(preprocessor, texts):
    """Returns the largest difference of an exported program's logits from those of `predict`."""
    task = classifier(preprocessor)
    with tempfile.TemporaryDirectory() as folder:
        task.export(folder, text=True, verbose=False)
        program = tf.saved_model.load(folder)
        pairs = texts[::-1]
        found = [program.serve(texts), program.serve_pairs(texts, pairs)]
    wanted = [task.predict(x, verbose=0) for x in (texts, (texts, pairs))]
    return max(np.abs(a["logits"] - b).max() for a, b in zip(found, wanted, strict=True))


def wrong_characters(tokenizer):
    """Returns the characters whose words differ, alone or between marks, and how many there are."""
    graph = GraphTokenizer(tokenizer)
    words_of = compiled(lambda texts: tf.strings.split(graph._spaced(texts)))
    backend, wrong = tokenizer._backend, []
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    # Those at whose place private characters stand in the graph are taken out of texts before.
    codes = [code for code in codes if not 0xF0000 <= code <= 0xFFFFD]
    for begin in range(0, len(codes), 50_000):
        some = [chr(code) for code in codes[begin : begin + 50_000]]
        texts = [f"{c}x{c}\U0001d16d{c}\U0001d165y\U0001d165{c}{c}" for c in some]
        found = words_of(texts).to_list()
        for character, text, words in zip(some, texts, found, strict=True):
            clean = backend.normalizer.normalize_str(text)
            wanted = [word for word, _ in backend.pre_tokenizer.pre_tokenize_str(clean)]
            if [word.decode() for word in words] != wanted:
                wrong.append(f"U+{ord(character):04X}")
    return wrong, len(codes)


def others(vocabulary):
    """Returns tensorflow-text's own two, uncased."""
    tokens = bert_keras.tokenizers.read_vocabulary(vocabulary)
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(tokens, tf.range(len(tokens), dtype=tf.int64)), 1
    )
    slow = tensorflow_text.BertTokenizer(table, token_out_type=tf.int32, lower_case=True)
    fast = tensorflow_text.FastBertTokenizer(
        tokens, token_out_type=tf.int32, lower_case_nfd_strip_accents=True
    )
    return {
        "BertTokenizer": compiled(lambda texts: slow.tokenize(texts).merge_dims(1, 2)),
        "FastBertTokenizer": compiled(fast.tokenize),
    }


def report_others(kinds):
    tokenizer = bert_keras.WordPieceTokenizer(FLAGS.vocabulary)
    for name, graph in others(FLAGS.vocabulary).items():
        same = {kind: count_same(graph, tokenizer, kinds[kind]) for kind in kinds}
        print(f"{name}, uncased:", same, flush=True)


def report_sizes(folder):
    tokenizer = bert_keras.WordPieceTokenizer(FLAGS.vocabulary)
    task = classifier(bert_keras.TextPreprocessor(tokenizer))
    for name, options in (("ids", {}), ("texts", {"text": True})):
        task.export(folder / name, verbose=False, **options)
        size = (folder / name / "saved_model.pb").stat().st_size
        print(f"graph of a SavedModel that takes {name}: {size:,} bytes", flush=True)
    graph = GraphTokenizer(tokenizer)
    arrays = sum(array.numpy().nbytes for array in (graph._places, graph._pages))
    # The file adds two bytes to each text.
    texts = sum(len(text) + 2 for text in graph._texts.numpy())
    print(f"of it the table of all characters: {arrays + texts:,} bytes", flush=True)


def report_times(num_sentences=5000, rounds=7):
    texts = list(load_glue("SST-2", FLAGS.data_dir, "train").texts)[:num_sentences]
    tokenizer, batch = bert_keras.WordPieceTokenizer(FLAGS.vocabulary), tf.constant(texts)
    graphs = {
        "in the graph, exact": compiled(GraphTokenizer(tokenizer)),
        **others(FLAGS.vocabulary),
    }
    jobs = {name: lambda graph=graph: graph(batch) for name, graph in graphs.items()}
    jobs["tokenizers"] = lambda: tokenizer.flat_ids(texts)
    times = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            began = time.process_time()
            job()
            times[name].append(time.process_time() - began)
    for name, found in times.items():
        middle = 1e6 * statistics.median(found) / len(texts)
        print(f"{name}: {middle:.1f} ms of processor for 1,000 sentences of SST-2", flush=True)


if __name__ == "__main__":
    app.run(main)
