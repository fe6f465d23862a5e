"""Fine-tune BERT, or another encoder, to answer questions by a span of a text.

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
that is saved. `--sample` cuts the dev questions too; of questions with and without an answer it
keeps the shares. Questions whose answers a file does not tell are predicted, not measured.
KERAS_BACKEND chooses the backend.

Expected for SQuAD 1.1 with `--sample 6000 --epochs 2 --learning_rate 1e-4 --dtype mixed_bfloat16`:
exact match 49.8 and F1 62.1 on 6,000 dev questions, in half an hour on one core. More:
examples/README.md.
"""

import json
import os

import numpy as np
import recipe
from absl import flags

import bert_keras
from bert_keras import datasets, metrics
from bert_keras.cli import mistakes
from bert_keras.files import writing

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
    test = without_blanks(FLAGS.test_file) if FLAGS.test_file else []
    metric = FLAGS.metric or metric_of(dev)
    num_dev = len(dev)
    train, dev = sampled(train), sampled(dev)
    check_answered(metric, train=train, dev=dev)
    if not any(example.spans or example.is_impossible for example in train):
        raise ValueError(
            f"None of the {len(train)} answers to train on stands in its context where it says. "
            "Correct 'answer_start', which counts characters from 0."
        )
    if len(dev) < num_dev:
        print(f"--sample cut the {num_dev} dev questions to {len(dev)}: no score of the whole set.")
    tell_unanswered(metric, dev=dev, test=test)
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
        for examples in filter(None, (dev, test)):
            qa.cut(examples)  # Raises now, and not after hours, where a question has no token.
        recipe.check_vocabulary(qa, [example.context for example in train])
        qa.compile(learning_rate=FLAGS.learning_rate)
        if FLAGS.epochs:
            history = qa.fit(
                train,
                batch_size=FLAGS.batch_size,
                epochs=FLAGS.epochs,
                sort_window=FLAGS.sort_window,
            )
            recipe.plot_learning_curves(history, seed)
        found = qa.n_best(dev, FLAGS.n_best, verbose=1)
        return (qa, found), score(qa, metric, dev, found, tune=True)

    (qa, found), rows = recipe.run_seeds(run)
    write_predictions(qa, metric, dev, found)
    reloaded = recipe.save_and_load(qa)
    print("Loaded again, it answers:")
    for example in dev[:3]:
        answer = reloaded.answer(example.question, example.context)
        print(f"  {example.question}  {answer}")
    results = recipe.over_seeds(rows)
    if test:
        found = reloaded.n_best(test, FLAGS.n_best, verbose=1)
        write_predictions(reloaded, metric, test, found, "test_")
        if answered(metric, test):
            scores = score(reloaded, metric, test, found)
            results |= {f"test_{name}": value for name, value in scores.items()}
    recipe.finish(results)


def load_data():
    """Returns training and dev examples, from whichever flags were given."""
    if FLAGS.train_file:
        files = FLAGS.train_file, FLAGS.dev_file
    elif FLAGS.data_dir:
        recipe.check_folder()
        files = find_file(TRAIN_FILES), find_file(DEV_FILES)
    else:
        raise SystemExit("Pass --data_dir, or --train_file and --dev_file.")
    if all(files):
        return tuple(without_blanks(file) for file in files)
    only = files[0] or files[1]
    if only is None:
        raise SystemExit(f"{FLAGS.data_dir} has none of {[*TRAIN_FILES, *DEV_FILES]}.")
    print(f"Only {only} is there: it is split by contexts, a fifth of them to measure on.")
    examples = without_blanks(only)
    contexts = sorted({example.context for example in examples})
    if len(contexts) < 2:
        raise ValueError(
            f"{only} must hold questions on two contexts or more to be split. Received: "
            f"{len(examples)} questions on {len(contexts)}. Pass another file by --dev_file."
        )
    order = np.random.default_rng(0).permutation(len(contexts))
    for_dev = {contexts[index] for index in order[: max(1, len(order) // 5)]}
    train = [example for example in examples if example.context not in for_dev]
    return train, [example for example in examples if example.context in for_dev]


def answered(metric, examples):
    """Returns the examples that `metric` can measure: only SQuAD 2.0's has "no answer"."""
    return [e for e in examples if e.answers or (metric == "squad_v2" and e.is_impossible)]


def check_answered(metric, **parts):
    """Raises `ValueError` unless each part has questions whose answers are known."""
    for name, examples in parts.items():
        if not answered(metric, examples):
            raise ValueError(
                f"The {name} examples must have answers. Received: {len(examples)} questions "
                f"without any that {metric} knows. Pass a file without answers by --test_file."
            )


def tell_unanswered(metric, **parts):
    """Prints of each part how many questions are predicted but not measured."""
    for name, examples in parts.items():
        count = len(examples) - len(answered(metric, examples))
        if count:
            print(
                f"{count} of {len(examples)} {name} questions have no answer that {metric} can "
                "measure: they are left out of the scores."
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
    """Returns `examples`, or `--sample` of them, drawn by `--seed`.

    Questions with and without an answer keep their shares, and where there are both, there is at
    least one of each in a sample of two or more.
    """
    size = FLAGS.sample
    if size is None or size >= len(examples):
        return examples
    order = np.random.default_rng(FLAGS.seed).permutation(len(examples))
    impossible = np.array([examples[index].is_impossible for index in order])
    num_impossible = round(size * impossible.mean())
    if size > 1 and impossible.any() and not impossible.all():
        num_impossible = min(max(num_impossible, 1), size - 1)
    # The first of each kind.
    ranks = np.where(impossible, np.cumsum(impossible), np.cumsum(~impossible))
    chosen = ranks <= np.where(impossible, num_impossible, size - num_impossible)
    return [examples[index] for index in order[chosen]]


def metric_of(examples):
    """Returns the official metric for data of this kind."""
    if any(example.is_impossible for example in examples):
        return "squad_v2"
    chinese = sum("\u4e00" <= character <= "\u9fff" for character in examples[0].context)
    return "cmrc" if chinese > len(examples[0].context) / 4 else "squad_v1"


def score(qa, metric, examples, found, tune=False):
    """Returns the official scores, F1 first, of the questions that have answers.

    For SQuAD 2.0 tunes the threshold where asked and where there are both kinds of questions.
    """
    best_of = {e.id: best for e, best in zip(examples, found, strict=True)}
    examples = answered(metric, examples)
    answers = {e.id: [answer.text for answer in e.answers] for e in examples}
    texts = {name: best_of[name].spans[0].text for name in answers}
    if metric != "squad_v2":
        function = metrics.cmrc_scores if metric == "cmrc" else metrics.squad_v1_scores
        scores = function(answers, texts)
        return {"f1": scores["f1"], "exact_match": scores["exact_match"]}
    if tune and any(answers.values()) and not all(answers.values()):
        qa.tune_no_answer_threshold(examples, found=[best_of[name] for name in answers])
    elif tune:
        kind = "with" if any(answers.values()) else "without"
        print(f"Only questions {kind} an answer to measure on: no threshold is tuned.")
    options = {}
    if qa.no_answer_threshold is not None:
        null_odds = {name: best_of[name].no_answer_score for name in answers}
        options = {"no_answer_scores": null_odds, "threshold": qa.no_answer_threshold}
    scores = metrics.squad_v2_scores(answers, texts, **options)
    names = ("f1", "exact", "HasAns_f1", "HasAns_exact", "NoAns_exact")
    chosen = {name: scores[name] for name in names if name in scores}
    return {**chosen, "no_answer_threshold": qa.no_answer_threshold} if options else chosen


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
    for name, content in contents.items():
        path = os.path.join(FLAGS.output_dir, prefix + name)
        with writing(path) as file:
            json.dump(content, file, ensure_ascii=False, indent=1)


if __name__ == "__main__":
    mistakes.run(main)
