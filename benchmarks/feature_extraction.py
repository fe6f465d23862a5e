"""Tag words by an encoder's features without fine-tuning: table 7 of the paper.

    python benchmarks/feature_extraction.py --data_dir wnut17
    python benchmarks/feature_extraction.py --data_dir btc_ner --strategy last,concat_last_4
    python benchmarks/feature_extraction.py --train_file train.conll --dev_file dev.conll
    python benchmarks/feature_extraction.py --sentence "Ada lives in London."

The encoder stays as it is. Each word's features, the hidden states of its first piece, are computed
once; on top of them a two-layer BiLSTM and a dense layer learn the tags. One row of the table each:

| strategy | features of a word |
|---|---|
| embeddings | what goes into the first layer |
| second_to_last | the second-to-last layer's output |
| last | the last layer's output |
| weighted_sum_last_4 | the last four, with learned weights (`bert_keras.layers.layer_mix`) |
| concat_last_4 | the last four side by side |
| weighted_sum_all | all layers, with learned weights |

The files are those of `bert-keras train token_classification`, with tags that mark entities. The
features are held in memory as float16: 337 MB for the training words of WNUT-17 with a 6-layer,
384-wide encoder.

Writes into `--output_dir`: model.keras, the BiLSTM that is best on the dev set; tagger.keras, the
same with the encoder and its vocabulary, for `--sentence`; results.json, F1 on the dev and the test
set for each strategy; and test_predictions.tsv where there is a test file. The highest F1 on the
dev set is no result of its own, since the dev set chose it.

Expected for WNUT-17 with `--epochs 4`, in the order of the table: dev F1 0.340, 0.477, 0.351,
0.493, 0.518, 0.495; 4 minutes each on one core.
"""

import json
import os
import statistics

import keras
import numpy as np
from absl import app, flags

import bert_keras
from bert_keras import metrics
from bert_keras.answers.entity_tags import SCHEMES
from bert_keras.cli import training_files as data
from bert_keras.engine.atomic_files import write_json, write_text
from bert_keras.layers.layer_mix import LayerMix
from bert_keras.preprocessing import BucketedBatches, Ragged, length_buckets, sorted_batches
from bert_keras.preprocessing.word_windows import cut_words
from bert_keras.tasks.tagging_words import as_sentences, place_words
from bert_keras.training import SparseCrossentropy, WarmupDecay

FLAGS = flags.FLAGS

# Strategy -> which of the hidden states, embeddings first, and how they become one vector.
STRATEGIES = {
    "embeddings": (slice(0, 1), "concat"),
    "second_to_last": (slice(-2, -1), "concat"),
    "last": (slice(-1, None), "concat"),
    "weighted_sum_last_4": (slice(-4, None), "mix"),
    "concat_last_4": (slice(-4, None), "concat"),
    "weighted_sum_all": (slice(1, None), "mix"),
}

for name in ("data_dir", "train_file", "dev_file", "test_file"):
    flags.DEFINE_string(name, None, "See `bert-keras train token_classification -h`.")
flags.DEFINE_string("preset", "minilm_l6_en_uncased", "Registered name, folder or hf:// address.")
flags.DEFINE_enum("scheme", None, SCHEMES, "Count only what this scheme allows.")
flags.DEFINE_integer("word_column", None, "Column of the words, from 0; by default as usual.")
flags.DEFINE_integer("tag_column", None, "Column of the tags, from 0; -1 is the last.")
flags.DEFINE_integer("sample", None, "Train on this many sentences.", 1)
flags.DEFINE_integer("seed", 0, "Seed of the weights, the dropout and the order of sentences.")
flags.DEFINE_integer("seeds", 1, "Runs, with seeds from --seed on.", 1)
flags.DEFINE_integer("batch_size", 32, "Sentences a step.", 1)
flags.DEFINE_integer("max_length", 128, "Longest sequence in tokens.", 3)
flags.DEFINE_integer("sort_window", None, "Batches that are sorted by length together.", 1)
flags.DEFINE_string("dtype", "float32", "float32, mixed_bfloat16 or mixed_float16.")
flags.DEFINE_string("output_dir", "output/feature_extraction", "Folder for models and results.")
flags.DEFINE_integer("epochs", 12, "Times to go through the training set.", 0)
flags.DEFINE_float("learning_rate", 1e-3, "Peak learning rate, after a warm-up of 10 %.")
flags.DEFINE_list("strategy", list(STRATEGIES), "Rows of the table, separated by commas.")
flags.register_validator(
    "strategy",
    lambda names: names and len(set(names)) == len(names) and {*names} <= {*STRATEGIES},
    f"must be different ones of {', '.join(STRATEGIES)}",
)
flags.DEFINE_integer("lstm_units", 256, "Units of each direction of the BiLSTM; the paper has 768.")
flags.DEFINE_float("dropout", 0.3, "Rate on the features and between the layers of the BiLSTM.")
flags.DEFINE_multi_string(
    "sentence", None, "Train nothing: tag this by --output_dir's tagger.keras; may be repeated."
)


def main(argv):
    if FLAGS.sentence:
        path = os.path.join(FLAGS.output_dir, "tagger.keras")
        if not os.path.exists(path):
            raise SystemExit(f"--sentence needs {path}, which a training writes.")
        show(keras.models.load_model(path), FLAGS.sentence)
        return
    data.check_paths(FLAGS)
    train, dev, test, further, _ = data.read_tags(FLAGS)
    names = further["tags"]
    # Refuses tags that mark no entities, before the training.
    metrics.entity_scores([names], [names], scheme=FLAGS.scheme)
    train = data.sampled(train, FLAGS.sample, FLAGS.seed)
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    encoder = bert_keras.TextEmbedder.from_preset(
        FLAGS.preset, max_length=FLAGS.max_length, dtype=FLAGS.dtype
    )
    features = {}
    for name, part in (("train", train), ("dev", dev), ("test", test)):
        if part:
            features[name] = extract(encoder.backbone, encoder.preprocessor, part.words)
            print(f"{name}: {len(part)} sentences, features {features[name].values.shape}")

    best = None, None, -1.0

    def run(seed):
        nonlocal best
        results = {}
        for strategy in FLAGS.strategy:
            model = make_model(strategy, features["train"].values.shape[1:], len(names))
            if FLAGS.epochs:
                labels = numbers_of(train.tags, names)
                batches = make_batches(features["train"], strategy, labels, seed)
                fit(model, batches)
            f1 = entity_f1(model, strategy, features["dev"], dev.tags, names)
            results[f"{strategy}_f1"] = f1
            print(f"{strategy}: entity F1 {f1:.4f}", flush=True)
            if test and test.tags:
                found = entity_f1(model, strategy, features["test"], test.tags, names)
                results[f"{strategy}_test_f1"] = found
            if f1 > best[2]:
                best = strategy, model, f1
        return results

    rows = []
    for seed in range(FLAGS.seed, FLAGS.seed + FLAGS.seeds):
        keras.utils.set_random_seed(seed)
        rows.append(run(seed))
    strategy, model, _ = best
    path = os.path.join(FLAGS.output_dir, "tagger.keras")
    model.save(os.path.join(FLAGS.output_dir, "model.keras"))
    FeatureTagger(encoder, model, strategy, names).save(path)
    reloaded = keras.models.load_model(path)
    print(f"Saved {path}, the encoder and the BiLSTM on {strategy}; loaded again, it tags:")
    show(reloaded, dev.words[:3])
    if test:
        found = predict(reloaded.bilstm, strategy, features["test"], names)
        lines = [
            "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True))
            for words, tags in zip(test.words, found, strict=True)
        ]
        write_text(os.path.join(FLAGS.output_dir, "test_predictions.tsv"), "\n".join(lines) + "\n")
    results = {name: statistics.mean(row[name] for row in rows) for name in rows[0]}
    if len(rows) > 1:
        spread = {f"{n}_std": statistics.stdev(row[n] for row in rows) for n in rows[0]}
        results |= spread
    write_json(os.path.join(FLAGS.output_dir, "results.json"), results)
    print(json.dumps(results), flush=True)


def show(tagger, sentences):
    """Prints sentences with the tag of each word."""
    for pairs in tagger.tag(sentences):
        print("  " + " ".join(f"{word}/{tag}" for word, tag in pairs))


@keras.saving.register_keras_serializable(package="feature_extraction")
class FeatureTagger(keras.Model):
    """A frozen encoder with its vocabulary, and the BiLSTM on its features: one `.keras` file.

    Args:
        encoder: a `TextEmbedder`; its backbone and its preprocessor are used.
        bilstm: what `make_model` returns.
        strategy: str, one of STRATEGIES.
        label_names: sequence of str, the tags.
    """

    def __init__(self, encoder, bilstm, strategy, label_names, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.bilstm = bilstm
        self.strategy = strategy
        self.label_names = tuple(label_names)
        self.built = True  # Both parts are.

    def call(self, inputs):
        return self.bilstm(inputs)

    def tag(self, sentences):
        """Returns a list of `(word, tag)` for each sentence, a str or a list of words."""
        placed = place_words(self.encoder.preprocessor.tokenizer, as_sentences(sentences))
        words = [[text[start:end] for start, end in spans] for text, spans in placed]
        features = extract(self.encoder.backbone, self.encoder.preprocessor, words)
        tags = predict(self.bilstm, self.strategy, features, self.label_names)
        return [list(zip(*row, strict=True)) for row in zip(words, tags, strict=True)]

    def get_config(self):
        parts = {"encoder": self.encoder, "bilstm": self.bilstm}
        return {
            **super().get_config(),
            **{name: keras.saving.serialize_keras_object(part) for name, part in parts.items()},
            "strategy": self.strategy,
            "label_names": list(self.label_names),
        }

    @classmethod
    def from_config(cls, config):
        parts = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("encoder", "bilstm")
        }
        return cls(**{**config, **parts})


def extract(backbone, preprocessor, sentences):
    """Returns the hidden states of each word's first piece, all layers of it.

    Args:
        backbone: a backbone.
        preprocessor: a `TextPreprocessor`.
        sentences: list of lists of str. Those that do not fit are read through windows.

    Returns:
        `Ragged` float16, a row a sentence; the values are
        `(num_words, num_layers + 1, hidden_dim)`, embeddings first.
    """
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in backbone.input_names}
    states = backbone(inputs, return_hidden_states=True)["hidden_states"]
    encoder = keras.Model(inputs, keras.ops.cast(keras.ops.stack(states, axis=2), "float32"))
    max_length = preprocessor.max_length
    stride = max(1, preprocessor.room() // 2)
    windows = cut_words(preprocessor.tokenizer, sentences, max_length, stride)
    num_words = np.array([len(words) for words in sentences])
    shape = (num_words.sum(), backbone.num_layers + 1, backbone.hidden_dim)
    features = np.zeros(shape, "float16")
    for rows, length in sorted_batches(windows.words.lengths, FLAGS.batch_size):
        outputs = encoder.predict_on_batch(preprocessor.pack(windows.ids.take(rows), length=length))
        words = windows.words.take(rows).to_dense(length, padding=-1)
        features[words[words >= 0]] = outputs[words >= 0]
    return Ragged.from_flat(features, num_words)


def make_model(strategy, shape, num_tags):
    """Returns a BiLSTM of two layers on the hidden states that a strategy picks."""
    states, way = STRATEGIES[strategy]
    num_states = len(range(shape[0])[states])
    features = keras.Input((None, num_states, shape[1]), name="features")
    mask = keras.Input((None,), dtype="bool", name="mask")
    dtype = FLAGS.dtype
    if way == "mix":
        x = LayerMix(dtype=dtype)(features)
    else:
        x = keras.layers.Reshape((-1, num_states * shape[1]), dtype=dtype)(features)
    for _ in range(2):
        x = keras.layers.Dropout(FLAGS.dropout, dtype=dtype)(x)
        lstm = keras.layers.LSTM(FLAGS.lstm_units, return_sequences=True, dtype=dtype)
        x = keras.layers.Bidirectional(lstm, dtype=dtype)(x, mask=mask)
    x = keras.layers.Dropout(FLAGS.dropout, dtype=dtype)(x)
    logits = keras.layers.Dense(num_tags, dtype="float32")(x)
    return keras.Model({"features": features, "mask": mask}, logits)


def fit(model, batches):
    """Trains a BiLSTM on batches of features, and returns the history."""
    schedule = WarmupDecay(FLAGS.learning_rate, FLAGS.epochs * len(batches), warmup=0.1)
    optimizer = keras.optimizers.Adam(schedule)
    if FLAGS.dtype == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    model.compile(optimizer, loss=SparseCrossentropy())
    return model.fit(batches, epochs=FLAGS.epochs, verbose=2)


def make_batches(features, strategy, labels=None, seed=0):
    """Returns batches of sentences of like length, in the order of training or of prediction."""
    states, _ = STRATEGIES[strategy]

    def make_inputs(rows, length):
        mask = np.arange(length) < features.lengths[rows, None]
        picked = np.zeros((*mask.shape, *features.values[:1, states].shape[1:]), "float32")
        picked[mask] = np.concatenate([features[row][:, states] for row in rows])
        return {"features": picked, "mask": mask}

    return BucketedBatches(
        features.lengths,
        make_inputs,
        labels,
        batch_size=FLAGS.batch_size,
        shuffle=labels is not None,
        seed=seed,
        window=FLAGS.sort_window,
        buckets=length_buckets(max(16, int(features.lengths.max()))),
    )


def numbers_of(tags, names):
    """Returns tags as numbers: `Ragged` int32, a row a sentence."""
    numbers = {name: number for number, name in enumerate(names)}
    return Ragged.from_rows([[numbers[tag] for tag in row] for row in tags])


def predict(model, strategy, features, names):
    """Returns the tag of each word: a list of lists of str."""
    batches = make_batches(features, strategy)
    found = [None] * len(features)
    for number, (rows, _) in enumerate(batches.batches):
        tags = model.predict_on_batch(batches[number][0]).argmax(axis=-1)
        for place, row in enumerate(rows):
            found[row] = [names[tag] for tag in tags[place, : features.lengths[row]]]
    return found


def entity_f1(model, strategy, features, tags, names):
    found = predict(model, strategy, features, names)
    return metrics.entity_scores(tags, found, scheme=FLAGS.scheme)["f1"]


if __name__ == "__main__":
    app.run(main)
