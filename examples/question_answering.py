"""Fine-tune BERT to answer questions by a span of a text.

    python examples/question_answering.py --data_dir squad_v1
    python examples/question_answering.py --data_dir squad_v2 --max_length 384
    python examples/question_answering.py --data_dir cmrc2018 --preset bert_base_zh
    python examples/question_answering.py --train_file train.json --dev_file dev.json

`--data_dir` takes a folder with the files of SQuAD 1.1, SQuAD 2.0, CMRC 2018 or DRCD under their
original names; any other file in SQuAD's format goes by `--train_file` and `--dev_file`. Where
there is no training file, the dev file is split by contexts, four fifths to train on. The recipe
is the paper's, section 4.2: batches of 32, 3 epochs, 5e-5; windows of 384 tokens, one every 128.

Writes into `--output_dir`, in the format of the official scripts: predictions.json,
nbest_predictions.json, and for SQuAD 2.0 null_odds.json with the threshold tuned on the dev file,
which makes the dev score an upper bound. Of several seeds they are those of the best model, the one
that is saved. `--sample` cuts the dev questions too. KERAS_BACKEND chooses the backend.

Results with their settings and spread over seeds: examples/README.md.
"""

import json
import os

import numpy as np
import recipe
from absl import app, flags

import bert_keras
from bert_keras import datasets, metrics

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(recipe)  # for --help
FLAGS.set_default("max_length", 384)

flags.DEFINE_enum(
    "metric", None, ["squad_v1", "squad_v2", "cmrc"], "Official score; by default as the data asks."
)
flags.DEFINE_integer("stride", 128, "Tokens between the beginnings of two windows.", 1)
flags.DEFINE_integer("max_question_length", 64, "Tokens that stay of a question.", 1)
flags.DEFINE_integer("max_answer_length", 30, "Tokens of the longest answer.", 1)
flags.DEFINE_integer("n_best", 20, "Answers a question in nbest_predictions.json.", 1)
flags.DEFINE_enum(
    "normalization", "document", ["document", "per_window"], "Over what probabilities sum to 1."
)

TRAIN_FILES = (
    "train-v1.1.json",
    "train-v1.1.part.json.gz",
    "train-v2.0.json",
    "cmrc2018_train.json",
    "cmrc2018_trial.json",
    "DRCD_training.json",
)
DEV_FILES = ("dev-v1.1.json", "dev-v2.0.json", "cmrc2018_dev.json", "DRCD_dev.json")


def main(argv):
    train, dev = load_data()
    check_answered(train=train, dev=dev)
    metric = FLAGS.metric or metric_of(dev)
    num_dev = len(dev)
    train, dev = sampled(train), sampled(dev)
    if len(dev) < num_dev:
        print(f"--sample cut the {num_dev} dev questions to {len(dev)}: no score of the whole set.")
    print(f"{len(train)} questions to train on, {len(dev)} to measure on by {metric}.")

    def run(seed):
        qa = bert_keras.QuestionAnswering.from_preset(
            FLAGS.preset,
            max_length=FLAGS.max_length,
            stride=FLAGS.stride,
            max_question_length=FLAGS.max_question_length,
            max_answer_length=FLAGS.max_answer_length,
            normalization=FLAGS.normalization,
            dtype=FLAGS.dtype,
        )
        qa.compile(learning_rate=FLAGS.learning_rate)
        if FLAGS.epochs:
            history = qa.fit(train, batch_size=FLAGS.batch_size, epochs=FLAGS.epochs)
            recipe.plot_learning_curves(history)
        found = qa.n_best(dev, FLAGS.n_best, verbose=1)
        return (qa, found), score(qa, metric, dev, found, tune=True)

    (qa, found), rows = recipe.run_seeds(run)
    write_predictions(qa, metric, dev, found)
    reloaded = recipe.save_and_load(qa)
    print("Loaded again, it answers:")
    for example in dev[:3]:
        answer = reloaded.answer(example.question, example.context)
        print(f"  {example.question}  {answer}")
    if FLAGS.test_file:
        test = without_blanks(FLAGS.test_file)
        found = reloaded.n_best(test, FLAGS.n_best, verbose=1)
        write_predictions(reloaded, metric, test, found, "test_")
        if any(example.answers for example in test):
            print("Test:", score(reloaded, metric, test, found))
    recipe.finish({name: float(np.mean([row[name] for row in rows])) for name in rows[0]})


def load_data():
    """Returns training and dev examples, from whichever flags were given."""
    if FLAGS.train_file:
        files = FLAGS.train_file, FLAGS.dev_file
    elif FLAGS.data_dir:
        files = find_file(TRAIN_FILES), find_file(DEV_FILES)
    else:
        raise app.UsageError("Pass --data_dir, or --train_file and --dev_file.")
    if all(files):
        return tuple(without_blanks(file) for file in files)
    only = files[0] or files[1]
    if only is None:
        raise app.UsageError(f"{FLAGS.data_dir} has none of {[*TRAIN_FILES, *DEV_FILES]}.")
    print(f"Only {only} is there: it is split by contexts, a fifth of them to measure on.")
    examples = without_blanks(only)
    contexts = sorted({example.context for example in examples})
    order = np.random.default_rng(0).permutation(len(contexts))
    for_dev = {contexts[index] for index in order[: max(1, len(order) // 5)]}
    train = [example for example in examples if example.context not in for_dev]
    return train, [example for example in examples if example.context in for_dev]


def check_answered(**parts):
    """Raises `ValueError` unless each part has questions whose answers are known."""
    for name, examples in parts.items():
        if not any(example.answers or example.is_impossible for example in examples):
            raise ValueError(
                f"The {name} examples must have answers. Received: {len(examples)} questions "
                "without any. Pass a file without answers by --test_file."
            )


def find_file(names):
    """Returns the path of the first of these files in `--data_dir`, or `None`."""
    paths = [os.path.join(FLAGS.data_dir, name) for name in names]
    return next((path for path in paths if os.path.exists(path)), None)


def without_blanks(path):
    """Reads a file; says what it left out, and which answers it cannot train on."""
    examples, mismatches = datasets.read_squad(path)
    kept = [example for example in examples if example.question.strip()]
    if len(kept) < len(examples):
        print(f"{path}: left out {len(examples) - len(kept)} blank questions.")
    if mismatches:
        print(f"{path}: {len(mismatches)} answers do not stand in the context where they say.")
    return kept


def sampled(examples):
    """Returns `examples`, or `--sample` of them, drawn by `--seed`."""
    if FLAGS.sample is None or FLAGS.sample >= len(examples):
        return examples
    order = np.random.default_rng(FLAGS.seed).permutation(len(examples))
    return [examples[index] for index in order[: FLAGS.sample]]


def metric_of(examples):
    """Returns the official metric for data of this kind."""
    if any(example.is_impossible for example in examples):
        return "squad_v2"
    chinese = sum("\u4e00" <= character <= "\u9fff" for character in examples[0].context)
    return "cmrc" if chinese > len(examples[0].context) / 4 else "squad_v1"


def score(qa, metric, examples, found, tune=False):
    """Returns the official scores, F1 first; for SQuAD 2.0 tunes the threshold where asked."""
    answers = {e.id: [answer.text for answer in e.answers] for e in examples}
    texts = {e.id: best.spans[0].text for e, best in zip(examples, found, strict=True)}
    if metric != "squad_v2":
        function = metrics.cmrc_scores if metric == "cmrc" else metrics.squad_v1_scores
        scores = function(answers, texts)
        return {"f1": scores["f1"], "exact_match": scores["exact_match"]}
    null_odds = {e.id: best.no_answer_score for e, best in zip(examples, found, strict=True)}
    if tune:
        qa.tune_no_answer_threshold(examples, found=found)
    scores = metrics.squad_v2_scores(answers, texts, null_odds, qa.no_answer_threshold)
    names = ("f1", "exact", "HasAns_f1", "HasAns_exact", "NoAns_exact")
    chosen = {name: scores[name] for name in names if name in scores}
    return {**chosen, "no_answer_threshold": qa.no_answer_threshold}


def write_predictions(qa, metric, examples, found, prefix=""):
    """Writes the official scripts' files: texts, n-best lists, and null odds for SQuAD 2.0."""
    texts, lists, null_odds = {}, {}, {}
    for example, best in zip(examples, found, strict=True):
        spans = best.spans
        if metric == "squad_v2":
            spans = sorted([*spans, best.no_answer], key=lambda span: -span.probability)
        texts[example.id] = "" if qa.has_no_answer(best) else best.spans[0].text
        lists[example.id] = [
            {
                "text": span.text,
                "probability": span.probability,
                "start_logit": span.start_logit,
                "end_logit": span.end_logit,
            }
            for span in spans
        ]
        null_odds[example.id] = best.no_answer_score
    contents = {"predictions.json": texts, "nbest_predictions.json": lists}
    if metric == "squad_v2":
        contents["null_odds.json"] = null_odds
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    for name, content in contents.items():
        path = os.path.join(FLAGS.output_dir, prefix + name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False, indent=1)


if __name__ == "__main__":
    app.run(main)
