"""Two tasks of `bert-keras train` as a plain loop on transformers, to compare with.

    python benchmarks/transformers_recipe.py --data_dir glue_data/MRPC --task MRPC --seeds 3
    python benchmarks/transformers_recipe.py --data_dir wnut17 --entities \
        --learning_rate 1e-4 --epochs 5 --seeds 3

text_classification.py's without `--entities`, token_classification.py's with it: the same weights,
files, metrics, rate, epochs and batch size; tags are those of train and dev. AdamW, 10 % warm-up,
linear decay, gradients clipped at 1, dropout as in the checkpoint, batches in random order padded
to their longest text. The last line is a JSON object of mean, lowest and highest over the seeds.
"""

import json
import pathlib
import statistics

import numpy as np
import scipy.stats
import sklearn.metrics
import torch
import transformers
from absl import app, flags

from bert_keras import datasets, metrics
from bert_keras.presets.resolve import resolve

FLAGS = flags.FLAGS
flags.DEFINE_string("preset", "minilm_l6_en_uncased", "Registered name or folder.")
flags.DEFINE_string("data_dir", None, "Folder with the dataset's original files.", required=True)
flags.DEFINE_string("task", None, "Name of the dataset, where --data_dir does not tell.")
flags.DEFINE_bool("entities", False, "Tag the words of CoNLL files, and score entities.")
flags.DEFINE_integer("epochs", 3, "Times to go through the training set.")
flags.DEFINE_integer("batch_size", 32, "Examples a step.")
flags.DEFINE_float("learning_rate", 5e-5, "Peak learning rate.")
flags.DEFINE_integer("max_length", 128, "Longest sequence in tokens.")
flags.DEFINE_integer("sample", None, "Train on this many examples, those of the recipe.")
flags.DEFINE_integer("seed", 0, "First seed.")
flags.DEFINE_integer("seeds", 1, "Runs.")

IGNORED = -100  # What the loss of transformers' models leaves out.


def main(argv):
    task = (Entities if FLAGS.entities else Texts)(resolve(FLAGS.preset))
    rows = []
    for seed in range(FLAGS.seed, FLAGS.seed + FLAGS.seeds):
        torch.manual_seed(seed)
        model = task.model()
        fit(model, task, seed)
        rows.append(task.scores(predict(model, task)))
        print(f"seed {seed}: {rows[-1]}", flush=True)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    summary = {
        name: [statistics.mean(values), min(values), max(values)]
        for name, values in columns.items()
    }
    print(json.dumps(summary), flush=True)


def fit(model, task, seed):
    train = sampled(task.train)
    num_batches = -(-len(train) // FLAGS.batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=FLAGS.learning_rate, weight_decay=0.01)
    num_steps = FLAGS.epochs * num_batches
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, num_steps // 10, num_steps)
    generator = np.random.default_rng(seed)
    model.train()
    for _ in range(FLAGS.epochs):
        for rows in np.array_split(generator.permutation(len(train)), num_batches):
            model(**task.encoded(train, rows)).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()


def sampled(train):
    if not FLAGS.sample or FLAGS.sample >= len(train):
        return train
    return train.take(np.random.default_rng(FLAGS.seed).permutation(len(train))[: FLAGS.sample])


def predict(model, task):
    """Returns the logits of the dev set, a list of arrays by batch of 64, in order."""
    model.eval()
    places = range(len(task.dev))
    with torch.no_grad():
        return [
            model(**task.encoded(task.dev, places[start : start + 64])).logits.numpy()
            for start in range(0, len(places), 64)
        ]


class Texts:
    """Texts or pairs and a class or a score, of GLUE."""

    def __init__(self, folder):
        self.folder = folder
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.train, self.dev = (
            datasets.load_glue(FLAGS.task, FLAGS.data_dir, part) for part in ("train", "dev")
        )

    def model(self):
        return transformers.AutoModelForSequenceClassification.from_pretrained(
            self.folder, num_labels=len(self.train.label_names or [0]), dtype=torch.float32
        )

    def encoded(self, examples, rows):
        columns = examples.texts if isinstance(examples.texts, tuple) else (examples.texts,)
        inputs = padded(self.tokenizer, *([column[row] for row in rows] for column in columns))
        dtype = torch.float32 if self.train.label_names is None else torch.int64
        inputs["labels"] = torch.tensor(np.asarray(examples.labels)[list(rows)], dtype=dtype)
        return inputs

    def scores(self, outputs):
        outputs, labels = np.concatenate(outputs), self.dev.labels
        if outputs.shape[1] == 1:
            return {
                "pearson": scipy.stats.pearsonr(labels, outputs[:, 0]).statistic,
                "spearman": scipy.stats.spearmanr(labels, outputs[:, 0]).statistic,
            }
        predicted = outputs.argmax(-1)
        average = "binary" if outputs.shape[1] == 2 else "macro"
        return {
            "accuracy": sklearn.metrics.accuracy_score(labels, predicted),
            "f1": sklearn.metrics.f1_score(labels, predicted, average=average, zero_division=0.0),
            "matthews_correlation": sklearn.metrics.matthews_corrcoef(labels, predicted),
        }


class Entities:
    """Words and their tags: the first piece of a word has its tag, the others none."""

    def __init__(self, folder):
        self.folder = folder
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.train, self.dev = (datasets.read_conll(file_of(part)) for part in ("train", "dev"))
        self.names = datasets.tag_names(self.train, self.dev)

    def model(self):
        return transformers.AutoModelForTokenClassification.from_pretrained(
            self.folder, num_labels=len(self.names), dtype=torch.float32
        )

    def encoded(self, examples, rows):
        words = [examples.words[row] for row in rows]
        inputs = padded(self.tokenizer, words, is_split_into_words=True)
        labels = np.full(inputs["input_ids"].shape, IGNORED)
        for place, row in enumerate(rows):
            tags = examples.tags[row]
            for word, token in first_pieces(inputs.word_ids(place)).items():
                labels[place, token] = self.names.index(tags[word])
        inputs["labels"] = torch.tensor(labels)
        return inputs

    def scores(self, outputs):
        found = []
        for start, logits in zip(range(0, len(self.dev), 64), outputs, strict=True):
            words = self.dev.words[start : start + 64]
            inputs = padded(self.tokenizer, words, is_split_into_words=True)
            for place, sentence in enumerate(words):
                tags = ["O"] * len(sentence)  # Also of words beyond the longest sequence.
                for word, token in first_pieces(inputs.word_ids(place)).items():
                    tags[word] = self.names[logits[place, token].argmax()]
                found.append(tags)
        scores = metrics.entity_scores(self.dev.tags, found)
        return {name: scores[name] for name in ("f1", "precision", "recall")}


def file_of(part):
    """Returns the file of `--data_dir` with `train` or `dev` in its name."""
    paths = sorted(pathlib.Path(FLAGS.data_dir).iterdir())
    found = [str(path) for path in paths if part in path.name.lower()]
    if not found:
        raise SystemExit(f"{FLAGS.data_dir} must hold a file with {part!r} in its name.")
    return found[0]


def padded(tokenizer, *columns, **options):
    return tokenizer(
        *columns,
        truncation=True,
        max_length=FLAGS.max_length,
        padding=True,
        return_tensors="pt",
        **options,
    )


def first_pieces(word_ids):
    """Returns the position of each word's first token, by word."""
    first = {}
    for token, word in enumerate(word_ids):
        if word is not None:
            first.setdefault(word, token)
    return first


if __name__ == "__main__":
    app.run(main)
