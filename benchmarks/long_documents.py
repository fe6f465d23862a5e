r"""Texts of up to 8,192 tokens, read at once or in windows of 512: score, seconds, memory.

    KERAS_BACKEND=torch OMP_NUM_THREADS=1 python benchmarks/long_documents.py \
        --preset families/ModernBERT_0 --imdb_dir imdb --squad_dir squad_v1 --output long.jsonl

The preset is that of a ModernBERT, whose rotary positions go on beyond those that it was trained
at. IMDB: a `LongTextClassifier` is trained and measured in one way after another, at once, in
windows of 512, or of each review the first 512 tokens alone; "beyond" is the accuracy on reviews of
more than 512 tokens. Questions: a `QuestionAnswering` is trained on paragraphs of SQuAD; then the
same weights look for the answers in paragraphs joined to contexts of so many tokens, at once and in
windows of 512 that overlap by half.

Each way runs in a process of its own, whose peak of memory is told beside that before the work.
Seconds are the processor's. `--output` gets a JSON line a way and seed, and the same command goes
on where one was stopped; the table is printed in Markdown.
"""

import json
import multiprocessing
import os
import resource
import time

import numpy as np
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("preset", None, "Folder of a pre-trained ModernBERT.", required=True)
flags.DEFINE_string("imdb_dir", None, "Folder of IMDB.", required=True)
flags.DEFINE_string("squad_dir", None, "Folder of SQuAD 1.1.", required=True)
flags.DEFINE_string("output", None, "File of results, a JSON line each.", required=True)
flags.DEFINE_integer("seeds", 2, "Runs of each way.", 1)
flags.DEFINE_integer("reviews", 1000, "Of IMDB, to train on, and as many to measure on.", 1)
flags.DEFINE_integer("paragraph_questions", 2000, "Of SQuAD to train on.", 1)
flags.DEFINE_integer("questions", 60, "Asked of the long contexts.", 1)
flags.DEFINE_list("lengths", ["1024", "8192"], "Tokens of a long context.")
flags.DEFINE_integer("epochs", 2, "Times to go through the examples.", 1)
flags.DEFINE_float("learning_rate", 3e-4, "Peak rate.")

LONGEST, WINDOW = 8192, 512
WAYS = {"at once": (LONGEST, 1), "windows": (WINDOW, LONGEST // WINDOW), "first 512": (WINDOW, 1)}


def main(argv):
    settings = FLAGS.flag_values_dict()
    jobs = [("IMDB", way) for way in WAYS]
    jobs += [(f"questions, {n} tokens", way) for n in FLAGS.lengths for way in list(WAYS)[:2]]
    found = []
    if os.path.exists(FLAGS.output):
        with open(FLAGS.output, encoding="utf-8") as file:
            found = [json.loads(line) for line in file]
    done = {(each["set"], each["way"], each["seed"]) for each in found}
    spawn = multiprocessing.get_context("spawn")
    for seed in range(FLAGS.seeds):
        if not os.path.exists(folder_of(settings, seed)):
            with spawn.Pool(1) as process:
                process.apply(train_to_answer, (settings, seed))
        for job in jobs:
            if (*job, seed) in done:
                continue
            with spawn.Pool(1) as process:
                found.append(process.apply(run, (settings, *job, seed)))
            with open(FLAGS.output, "a", encoding="utf-8") as file:
                print(json.dumps(found[-1]), file=file, flush=True)
    print(table(found, jobs))


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(settings, name, way, seed):
    """Returns what one way gives and takes; runs in a process of its own."""
    import keras

    keras.utils.set_random_seed(seed)
    job = imdb if name == "IMDB" else questions
    length = None if name == "IMDB" else int(name.split()[1])
    found = {"set": name, "way": way, "seed": seed, **job(settings, way, seed, length)}
    return {**found, "peak_mb": round(megabytes())}


def imdb(settings, way, seed, _):
    """Trains a classifier of reviews in one way, and measures it."""
    import bert_keras

    parts = [bert_keras.datasets.load_imdb(settings["imdb_dir"], x) for x in ("train", "test")]
    rng = np.random.default_rng(seed)
    train, test = (x.take(rng.permutation(len(x))[: settings["reviews"]]) for x in parts)
    max_length, num_windows = WAYS[way]
    model = bert_keras.LongTextClassifier.from_preset(
        settings["preset"],
        num_classes=2,
        pooling="mean",
        max_length=max_length,
        num_windows=num_windows,
        backbone={"max_sequence_length": LONGEST},
    )
    before, started = megabytes(), time.process_time()
    model.compile(learning_rate=settings["learning_rate"])
    model.fit(train.texts, train.labels, epochs=settings["epochs"], batch_size=16, verbose=0)
    trained = time.process_time()
    right = model.predict(test.texts, batch_size=16, verbose=0).argmax(-1) == test.labels
    is_long = model.preprocessor.tokenize(test.texts)[0].lengths > WINDOW - 2
    return {
        "score": float(right.mean()),
        "beyond": float(right[is_long].mean()),
        "long": int(is_long.sum()),
        "train_s": trained - started,
        "predict_s": time.process_time() - trained,
        "before_mb": round(before),
    }


def questions(settings, way, seed, length):
    """Asks the trained model of long contexts in one way."""
    import bert_keras

    examples = read_squad(settings["squad_dir"], "dev")
    max_length, stride = (LONGEST, LONGEST) if way == "at once" else (WINDOW, WINDOW // 2)
    model = bert_keras.QuestionAnswering.from_preset(
        folder_of(settings, seed), max_length=max_length, stride=stride, max_question_length=32
    )
    joined = long_contexts(examples, length, model.tokenizer)
    rng = np.random.default_rng(seed)
    asked = [joined[i] for i in rng.permutation(len(joined))[: settings["questions"]]]
    before, started = megabytes(), time.process_time()
    best = model.n_best(asked, 1, batch_size=4)
    seconds = time.process_time() - started
    texts = {e.id: each.spans[0].text for e, each in zip(asked, best, strict=True)}
    wanted = {e.id: [answer.text for answer in e.answers] for e in asked}
    scores = bert_keras.metrics.squad_v1_scores(wanted, texts)
    return {"score": scores["f1"], "predict_s": seconds, "before_mb": round(before)}


def folder_of(settings, seed):
    return f"{settings['output']}.answering_{seed}"


def train_to_answer(settings, seed):
    """Trains a model on paragraphs, and saves it."""
    import keras

    import bert_keras

    keras.utils.set_random_seed(seed)
    examples = read_squad(settings["squad_dir"], "train")
    chosen = np.random.default_rng(seed).permutation(len(examples))
    model = bert_keras.QuestionAnswering.from_preset(
        settings["preset"],
        max_length=WINDOW,
        stride=WINDOW // 2,
        max_question_length=32,
        backbone={"max_sequence_length": LONGEST},
    )
    model.compile(learning_rate=settings["learning_rate"])
    train = [examples[i] for i in chosen[: settings["paragraph_questions"]]]
    model.fit(train, epochs=settings["epochs"], batch_size=16, verbose=0)
    model.save_to_preset(folder_of(settings, seed))


def read_squad(folder, part):
    from pathlib import Path

    from bert_keras.datasets import read_squad

    return read_squad(next(Path(folder).glob(f"{part}-v1.1*"))).examples


def long_contexts(examples, length, tokenizer):
    """Returns the questions with contexts that are neighbouring paragraphs, joined to a length."""
    from bert_keras.datasets.squad import Answer, QuestionExample

    contexts = list(dict.fromkeys(example.context for example in examples))
    sizes = [len(ids) for ids in tokenizer(contexts)]
    groups, size = [[]], 0
    for context, tokens in zip(contexts, sizes, strict=True):
        if groups[-1] and size + tokens > length - 40:  # Question and special tokens.
            groups.append([])
            size = 0
        groups[-1].append(context)
        size += tokens
    joined, places = {}, {}
    for group in groups[:-1]:  # The last is shorter.
        start = 0
        for context in group:
            joined[context], places[context] = "\n".join(group), start
            start += len(context) + 1
    return [
        QuestionExample(
            example.id,
            example.question,
            joined[example.context],
            tuple(Answer(a.text, a.start + places[example.context]) for a in example.answers),
        )
        for example in examples
        if example.context in joined
    ]


def table(found, jobs):
    """Returns the results in Markdown, means with the lowest and the highest."""
    columns = ["score", "beyond", "train_s", "predict_s", "peak_mb", "before_mb"]
    lines = ["| | | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for name, way in jobs:
        runs = [each for each in found if (each["set"], each["way"]) == (name, way)]
        cells = []
        for column in columns:
            values = [each[column] for each in runs if column in each]
            digits = 3 if column == "beyond" or (column == "score" and name == "IMDB") else 1
            spread = f" ({min(values):.{digits}f} to {max(values):.{digits}f})" if values else ""
            cells.append(f"{np.mean(values):.{digits}f}{spread}" if values else "")
        lines.append(f"| {name} | {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    app.run(main)
