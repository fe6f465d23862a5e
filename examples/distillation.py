r"""Distil a language model: a student with some of the teacher's layers learns from its answers.

    python examples/distillation.py --output_dir half_as_deep
    python examples/distillation.py --train_file books.txt --heldout_file another.txt --layers 0,2

The student begins with the teacher's embeddings, its head and the layers of `--layers`, and then
learns as DistilBERT did: the teacher's whole distribution at each token, the masked tokens, and the
direction of the teacher's hidden states. Its perplexity at masked tokens of held-out lines is
printed before and after, beside the teacher's.

Files are plain text, a text a line; without them lines are the sentences of
examples/data/sentiment_labelled_sentences, 600 of 3,000 held out. Writes the student, a preset that
any task can be fine-tuned from, into `--output_dir`. KERAS_BACKEND chooses the backend.

Expected of the first command, one seed on PyTorch: perplexity 61, where the student began with 259;
the teacher, which has read no reviews, has 94. It takes 3 minutes of one core.
"""

import json
import os

import keras
from absl import flags

import bert_keras
from bert_keras import datasets
from bert_keras.cli import mistakes

FLAGS = flags.FLAGS
SENTENCES = os.path.join(os.path.dirname(__file__), "data", "sentiment_labelled_sentences")

flags.DEFINE_string("preset", "bert_mini_en_gutenberg", "Teacher: registered name, folder or hub.")
flags.DEFINE_list("layers", ["0", "2"], "The teacher's layers that the student begins with.")
flags.DEFINE_string("train_file", None, "Plain text, a text a line.")
flags.DEFINE_string("heldout_file", None, "Plain text, a text a line.")
flags.DEFINE_integer("sample", None, "Train on this many lines.", lower_bound=1)
flags.DEFINE_integer("epochs", 3, "Times to go through the text.", lower_bound=0)
flags.DEFINE_integer("batch_size", 32, "Lines a step.", lower_bound=1)
flags.DEFINE_float("learning_rate", 5e-4, "Peak learning rate, after a warm-up of 10 %.")
flags.DEFINE_integer("seed", 0, "Seed of the masks, the dropout and the order of lines.")
flags.DEFINE_string("output_dir", "output", "Folder for the student.")


def main(argv):
    keras.utils.set_random_seed(FLAGS.seed)
    train, heldout = load_lines()
    teacher = bert_keras.MaskedLM.from_preset(FLAGS.preset)
    model = bert_keras.distill(teacher, student=[int(layer) for layer in FLAGS.layers])
    scores = {"teacher": perplexity(teacher, heldout), "before": perplexity(model.student, heldout)}
    model.compile(learning_rate=FLAGS.learning_rate)
    model.fit(train[: FLAGS.sample], batch_size=FLAGS.batch_size, epochs=FLAGS.epochs)
    scores["perplexity"] = perplexity(model.student, heldout)
    model.student.save_to_preset(FLAGS.output_dir)
    student, size = model.student.backbone, teacher.backbone.count_params()
    print(f"{student.num_layers} layers, {student.count_params() / size:.0%} of the parameters:")
    print(model.student.fill_mask(f"This is a {teacher.tokenizer.mask_token} film.", top_k=3))
    print(json.dumps(scores))


def load_lines():
    """Returns the lines to train on and those to measure on."""
    if FLAGS.train_file is None:
        train, heldout = datasets.load_sentiment_sentences(SENTENCES)
        return train.texts, heldout.texts
    if FLAGS.heldout_file is None:
        raise SystemExit("Pass --heldout_file beside --train_file: it is measured on other text.")
    files = []
    for path in (FLAGS.train_file, FLAGS.heldout_file):
        with open(path, encoding="utf-8") as file:
            files.append([line.strip() for line in file if line.strip()])
    return files


def perplexity(model, lines):
    """Returns the perplexity at masked tokens, always the same ones."""
    return model.evaluate(lines, verbose=0, return_dict=True)["perplexity"]


if __name__ == "__main__":
    mistakes.run(main)
