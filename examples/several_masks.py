r"""Fine-tune a text classifier on several dropout masks a text: R-Drop, and multi-sample dropout.

    python examples/several_masks.py --preset bert_mini_en_gutenberg
    python examples/several_masks.py --consistency 0 --dropout_samples 5
    python examples/several_masks.py --train_file reviews.csv --dev_file dev.csv

Dropout makes another network of each step. R-Drop reads each batch twice and asks both networks for
the same answer: `--consistency` times their disagreement is added to the loss. Multi-sample dropout
draws `--dropout_samples` masks for the classifier alone and takes the mean of the losses.

`Regularized` is all there is to it: `SeveralMasks` before the class of a task. Registered like
this, it is saved and loaded with its settings, wherever the class is defined.

Without data flags it trains on the 2,400 sentences of examples/data/sentiment_labelled_sentences
and measures on 600 others; files have columns `text` and `label`. A step of R-Drop takes twice as
long. On MRPC and WNUT-17 neither gained beyond the noise, see docs/fine_tuning_ablations.md.
KERAS_BACKEND chooses the backend.
"""

import os

import keras
import recipe
import tables
from absl import flags

import bert_keras
from bert_keras import datasets
from bert_keras.cli import mistakes
from bert_keras.training import SeveralMasks

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(recipe)  # for --help
SENTENCES = os.path.join(os.path.dirname(__file__), "data", "sentiment_labelled_sentences")

flags.DEFINE_float("consistency", 1.0, "Weight of the disagreement; 0 for one pass.", 0.0)
flags.DEFINE_integer("dropout_samples", 1, "Dropout masks of the classifier.", lower_bound=1)


@keras.saving.register_keras_serializable(package="several_masks")
class Regularized(SeveralMasks, bert_keras.TextClassifier):
    """A text classifier that trains on several dropout masks."""


def main(argv):
    train, dev = load_data()
    recipe.check_labelled(train=train, dev=dev)
    train = recipe.sampled(train)

    def run(seed):
        classifier = Regularized.from_preset(
            FLAGS.preset,
            label_names=train.label_names,
            consistency=FLAGS.consistency or None,
            dropout_samples=FLAGS.dropout_samples,
            max_length=FLAGS.max_length,
            dtype=FLAGS.dtype,
        )
        classifier.compile(learning_rate=FLAGS.learning_rate)
        history = classifier.fit(
            train.texts,
            train.labels,
            batch_size=FLAGS.batch_size,
            epochs=FLAGS.epochs,
            sort_window=FLAGS.sort_window,
            validation_data=(dev.texts, dev.labels),
        )
        recipe.plot_learning_curves(history, seed)
        return classifier, {"accuracy": accuracy(classifier, dev)}

    classifier, rows = recipe.run_seeds(run)
    reloaded = recipe.save_and_load(classifier)
    print(f"Loaded again, a {type(reloaded).__name__}: {reloaded.classify(dev.texts[:2])}")
    recipe.finish(recipe.over_seeds(rows))


def accuracy(classifier, examples):
    outputs = classifier.predict(examples.texts, verbose=0)
    return float((outputs.argmax(-1) == examples.labels).mean())


def load_data():
    """Returns training and dev examples."""
    if not FLAGS.train_file:
        return datasets.load_sentiment_sentences(SENTENCES)
    train = tables.read_texts(FLAGS.train_file, ["text"], "label")
    if FLAGS.dev_file:
        return train, tables.read_texts(FLAGS.dev_file, ["text"], "label", train.label_names)
    return datasets.split_examples(train, test_size=max(2, len(train) // 10), seed=0)


if __name__ == "__main__":
    mistakes.run(main)
