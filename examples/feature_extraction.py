"""Tag words by an encoder's features without fine-tuning: table 7 of the paper.

    python examples/feature_extraction.py --data_dir wnut17
    python examples/feature_extraction.py --data_dir btc_ner --strategy last,concat_last_4
    python examples/feature_extraction.py --train_file train.conll --dev_file dev.conll
    python examples/feature_extraction.py --sentence "Ada lives in London."    # by the saved model

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

The files are those of token_classification.py, with tags that mark entities. The features are held
in memory as float16: 337 MB for the training words of WNUT-17 with a 6-layer, 384-wide encoder.

Writes into `--output_dir`: model.keras, the BiLSTM that is best on the dev set; tagger.keras, the
same with the encoder and its vocabulary, for `--sentence`; metrics.json, F1 on the dev and the test
set for each strategy; and test_predictions.tsv where there is a test file. The highest F1 on the
dev set is no result of its own, since the dev set chose it.

Expected for WNUT-17 with `--epochs 4`, in the order of the table: dev F1 0.340, 0.477, 0.351,
0.493, 0.518, 0.495; 4 minutes each on one core.
"""

import os

import keras
import numpy as np
import recipe
import tagged
from absl import flags

import bert_keras
from bert_keras import metrics
from bert_keras.cli import mistakes
from bert_keras.layers.layer_mix import LayerMix
from bert_keras.preprocessing import BucketedBatches, Ragged, length_buckets, sorted_batches
from bert_keras.preprocessing.word_windows import cut_words
from bert_keras.tasks.sentences import as_sentences, place_words
from bert_keras.training import SparseCrossentropy, WarmupDecay

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(tagged)  # for --help

# Strategy -> which of the hidden states, embeddings first, and how they become one vector.
STRATEGIES = {
    "embeddings": (slice(0, 1), "concat"),
    "second_to_last": (slice(-2, -1), "concat"),
    "last": (slice(-1, None), "concat"),
    "weighted_sum_last_4": (slice(-4, None), "mix"),
    "concat_last_4": (slice(-4, None), "concat"),
    "weighted_sum_all": (slice(1, None), "mix"),
}

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
FLAGS.set_default("epochs", 12)
FLAGS.set_default("learning_rate", 1e-3)


def main(argv):
    if FLAGS.sentence:
        path = os.path.join(FLAGS.output_dir, "tagger.keras")
        if not os.path.exists(path):
            raise SystemExit(f"--sentence needs {path}, which a training writes.")
        show(keras.models.load_model(path), FLAGS.sentence)
        return
    train, dev, test, names = tagged.load_data()
    # Refuses tags that mark no entities, before the training.
    metrics.entity_scores([names], [names], scheme=FLAGS.scheme)
    train = recipe.sampled(train)
    recipe.make_folders()
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
                history = fit(model, batches)
                recipe.plot_learning_curves(history, seed, f"learning_curves_{strategy}")
            f1 = entity_f1(model, strategy, features["dev"], dev.tags, names)
            results[f"{strategy}_f1"] = f1
            print(f"{strategy}: entity F1 {f1:.4f}", flush=True)
            if test and test.tags:
                found = entity_f1(model, strategy, features["test"], test.tags, names)
                results[f"{strategy}_test_f1"] = found
            if f1 > best[2]:
                best = strategy, model, f1
        return None, results

    _, rows = recipe.run_seeds(run)
    strategy, model, _ = best
    path = os.path.join(FLAGS.output_dir, "tagger.keras")
    model.save(os.path.join(FLAGS.output_dir, "model.keras"))
    FeatureTagger(encoder, model, strategy, names).save(path)
    reloaded = keras.models.load_model(path)
    print(f"Saved {path}, the encoder and the BiLSTM on {strategy}; loaded again, it tags:")
    show(reloaded, dev.words[:3])
    if test:
        found = predict(reloaded.bilstm, strategy, features["test"], names)
        tagged.write_predictions(test.words, found)
    results = recipe.over_seeds(rows)
    recipe.finish(results)


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
    mistakes.run(main)
