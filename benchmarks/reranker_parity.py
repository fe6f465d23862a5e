"""Train a reranker on SQuAD's questions here and in sentence-transformers, by the same recipe.

    KERAS_BACKEND=torch OMP_NUM_THREADS=1 python benchmarks/reranker_parity.py \\
        --train train-v1.1.json --dev dev-v1.1.json --output rerankers

Each question has three texts: the sentence that holds its answer, the one that
`mine_hard_negatives` finds among the sentences of all questions' paragraphs, and one that answers
another question. Both sides start with the same weights, those of an embedder and a new head on its
pooler. They read the same batches of 8 questions in the same order for one epoch. The loss is the
cross-entropy of the softmax over the texts of a question (`ListwiseCrossentropy`, `ListNetLoss`).
AdamW has linear warm-up over a tenth of the steps, linear decay, clipping at 1 and an epsilon of
1e-6. There is no dropout, since each library draws its own masks. A seed chooses the head and the
order of the questions.

For each question of the dev set, the embedder finds ten sentences among those of all questions'
paragraphs, and the reranker orders them; "fused" adds a tenth of its logit to the cosine. At the
end come the means over seeds, and the mean difference of the sides with a 95 % interval over
questions. Rows in the output folder are kept, so that a killed run continues. Times are processor
seconds.
"""

import json
import pathlib
import random
import time

import keras
import numpy as np
from absl import app, flags
from kept_rows import add_row, read_rows

import bert_keras
from bert_keras import corpora, search, training
from bert_keras.datasets import read_squad

TRAIN = flags.DEFINE_string("train", None, "A file in SQuAD's format.", required=True)
DEV = flags.DEFINE_string("dev", None, "Another one, to measure on.", required=True)
OUTPUT = flags.DEFINE_string("output", None, "Folder of rows and models.", required=True)
PRESET = flags.DEFINE_string("preset", "minilm_l6_en_uncased", "An embedder.")
SEEDS = flags.DEFINE_integer("seeds", 3, "Seeds 0, 1, ...")
NUM_QUESTIONS = flags.DEFINE_integer("num_questions", 480, "Questions to train on.")
NUM_DEV = flags.DEFINE_integer("num_dev", 120, "Questions to measure on.")
RATE = flags.DEFINE_float("learning_rate", 5e-4, "Peak rate.")
SIDES = ("bert_keras", "sentence-transformers")
BATCH, MAX_LENGTH, NUM_HITS, EPSILON = 8, 48, 10, 1e-6
# The first steps, whose losses must agree: later ones amplify rounding.
NUM_COMPARED = 5


def read_sentences(path, num_questions):
    """Returns questions, the sentences that answer them, and all sentences of their paragraphs."""
    examples, found, corpus = read_squad(path).examples, [], {}
    random.Random(0).shuffle(examples)
    for example in examples:
        sentences, end = corpora.split_sentences(example.context), 0
        for sentence in sentences:
            start = example.context.index(sentence, end)
            end = start + len(sentence)
            if start <= example.answers[0].start < end:
                found.append((example.question, sentence))
                corpus |= dict.fromkeys(sentences)
                break
        if len(found) == num_questions:
            break
    return *map(list, zip(*found, strict=True)), list(corpus)


def prepare(file):
    """Returns lists to train on and questions with their hits, which the file keeps."""
    if not file.exists():
        embedder = bert_keras.TextEmbedder.from_preset(PRESET.value, max_length=MAX_LENGTH)
        texts = read_sentences(TRAIN.value, NUM_QUESTIONS.value)
        queries, right, hard = bert_keras.mine_hard_negatives(embedder, *texts)
        easy = right[len(right) // 2 :] + right[: len(right) // 2]
        lists = list(zip(queries, right, hard, easy, strict=True))
        queries, right, corpus = read_sentences(DEV.value, NUM_DEV.value)
        index = search.Index()
        index.add(embedder.embed(corpus), ids=corpus)
        hits = index.search(embedder.embed(queries), NUM_HITS)
        data = {"lists": lists, "queries": queries, "right": right, "hits": hits}
        file.write_text(json.dumps(data))
    return json.loads(file.read_text())


class InOrder(keras.utils.PyDataset):
    """Batches of questions with their texts, which `fit` does not sort by length."""

    def __init__(self, preprocessor, lists):
        super().__init__()
        self.preprocessor, self.lists = preprocessor, lists

    def __len__(self):
        return len(self.lists) // BATCH

    def __getitem__(self, n):
        lists = self.lists[n * BATCH : (n + 1) * BATCH]
        pairs = [(query, text) for query, *texts in lists for text in texts]
        inputs = self.preprocessor(tuple(map(list, zip(*pairs, strict=True))))
        relevance = np.tile(np.float32([1, 0, 0]), (len(lists), 1))
        return {name: x.reshape(len(lists), 3, -1) for name, x in inputs.items()}, relevance


def ours(folder, lists):
    """Returns a function that scores pairs, the loss of each step, and seconds of training."""
    reranker = bert_keras.Reranker.from_preset(folder, max_length=MAX_LENGTH)
    batches = InOrder(reranker.preprocessor, lists)
    schedule = bert_keras.WarmupDecay(RATE.value, total_steps=len(batches))
    optimizer = bert_keras.AdamW(schedule, epsilon=EPSILON)
    reranker.compile(optimizer, loss=training.ListwiseCrossentropy())
    means = []
    callback = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: means.append(logs["loss"])
    )
    start = time.process_time()
    reranker.fit(batches, shuffle=False, epochs=1, verbose=0, callbacks=[callback])
    seconds = time.process_time() - start
    # `fit` reports the mean of all steps so far.
    losses = np.diff(np.arange(1, len(means) + 1) * means, prepend=0.0)
    return lambda *pairs: reranker.predict(pairs, verbose=0)[:, 0], losses, seconds


def theirs(folder, lists, seed):
    """Returns what `ours` returns, from sentence-transformers."""
    import datasets
    import torch
    from sentence_transformers import cross_encoder
    from sentence_transformers.cross_encoder import losses
    from torch.utils.data import BatchSampler, SequentialSampler

    class TrainerInOrder(cross_encoder.CrossEncoderTrainer):
        def get_batch_sampler(self, dataset, batch_size, drop_last, **kwargs):
            return BatchSampler(SequentialSampler(dataset), batch_size, drop_last)

    model = cross_encoder.CrossEncoder(str(folder), max_length=MAX_LENGTH, device="cpu")
    arguments = cross_encoder.CrossEncoderTrainingArguments(
        output_dir=str(folder) + "_theirs",
        per_device_train_batch_size=BATCH,
        num_train_epochs=1,
        learning_rate=RATE.value,
        warmup_steps=0.1,
        weight_decay=0.01,
        adam_epsilon=EPSILON,
        max_grad_norm=1.0,
        seed=seed,
        use_cpu=True,
        save_strategy="no",
        report_to="none",
        logging_steps=1,
        disable_tqdm=True,
    )
    table = {
        "query": [query for query, *_ in lists],
        "texts": [texts for _, *texts in lists],
        # ListNet's targets are the softmax of the labels, here exactly 1, 0 and 0.
        "labels": [[1000.0, 0.0, 0.0]] * len(lists),
    }
    trainer = TrainerInOrder(
        model,
        arguments,
        train_dataset=datasets.Dataset.from_dict(table),
        loss=losses.ListNetLoss(model, mini_batch_size=-1),
    )
    start = time.process_time()
    trainer.train()
    seconds = time.process_time() - start
    steps = [log["loss"] for log in trainer.state.log_history if "loss" in log]

    def score(queries, texts):
        pairs = list(zip(queries, texts, strict=True))
        return model.predict(pairs, batch_size=32, activation_fn=torch.nn.Identity())

    return score, np.array(steps), seconds


def measure(data, logits=None, weight=0.0):
    """Returns name -> a value for each question, with the hits ordered by a sum of scores.

    Args:
        data: see `prepare`.
        logits: the reranker's, one for each hit, or `None` for the embedder alone.
        weight: float, what the embedder's cosine counts beside a logit.
    """
    scores = np.array([[hit["score"] for hit in hits] for hits in data["hits"]])
    if logits is not None:
        scores = weight * scores + np.reshape(logits, scores.shape)
    answers = zip(data["hits"], data["right"], strict=True)
    is_right = np.array([[hit["id"] == right for hit in hits] for hits, right in answers])
    place = 1 + np.argmax(np.take_along_axis(is_right, np.argsort(-scores), 1), axis=1)
    found = is_right.any(axis=1)
    return {
        "recall@1": found * (place == 1),
        "mrr@10": found / place,
        "ndcg@10": found / np.log2(1 + place),
    }


def means(values):
    return {name: round(float(x.mean()), 4) for name, x in values.items()}


def train_and_score(folder, data, side, seed):
    """Trains one side from the weights of a seed; saves losses and logits, and returns a row."""
    start = folder / f"seed_{seed}"
    if not start.exists():
        keras.utils.set_random_seed(seed)
        options = {"pooling": "pooler", "dropout": 0.0, "max_length": MAX_LENGTH}
        options["backbone"] = dict.fromkeys(("dropout", "attention_dropout"), 0.0)
        bert_keras.Reranker.from_preset(PRESET.value, **options).export_to_huggingface(start)
    lists = random.Random(seed).sample(data["lists"], len(data["lists"]))
    keras.utils.set_random_seed(seed)
    train = (start, lists) if side == SIDES[0] else (start, lists, seed)
    score, losses, seconds = (ours if side == SIDES[0] else theirs)(*train)
    rows = zip(data["queries"], data["hits"], strict=True)
    pairs = [(query, hit["id"]) for query, hits in rows for hit in hits]
    began = time.process_time()
    logits = score(*map(list, zip(*pairs, strict=True)))
    row = {"side": side, "seed": seed, "training_seconds": round(seconds, 1)}
    row["scoring_seconds"] = round(time.process_time() - began, 1)
    row["last_losses"] = round(float(losses[-20:].mean()), 4)
    np.savez(folder / f"{side}_{seed}.npz", losses=losses, logits=logits)
    fused = means(measure(data, logits, weight=10.0))
    return row | means(measure(data, logits)) | {f"fused {k}": x for k, x in fused.items()}


def compare(folder, data):
    """Prints the means over seeds, and how far the sides are apart."""
    runs = [[np.load(folder / f"{side}_{n}.npz") for n in range(SEEDS.value)] for side in SIDES]
    first = [np.array([run["losses"][:NUM_COMPARED] for run in of_side]) for of_side in runs]
    print(f"the first {NUM_COMPARED} losses differ by {np.abs(first[0] - first[1]).max():.1e}")
    for label, weight in (("", 0.0), ("fused ", 10.0)):
        found = [[measure(data, run["logits"], weight) for run in of_side] for of_side in runs]
        for name in found[0][0]:
            values = np.array([[run[name] for run in of_side] for of_side in found], "float64")
            differences = (values[0] - values[1]).mean(axis=0)
            draws = np.random.default_rng(0).choice(differences, (10_000, len(differences)))
            low, high = np.percentile(draws.mean(axis=1), (2.5, 97.5))
            both = ", ".join(
                f"{side} {x.mean():.3f} ({', '.join(f'{run:.3f}' for run in x.mean(axis=1))})"
                for side, x in zip(SIDES, values, strict=True)
            )
            difference = f"{differences.mean():+.3f} ({low:+.3f} to {high:+.3f})"
            print(f"{label}{name}: {both}; difference {difference}")


def main(argv):
    folder = pathlib.Path(OUTPUT.value)
    folder.mkdir(parents=True, exist_ok=True)
    data = prepare(folder / "data.json")
    lists, rows = data["lists"], folder / "rows.jsonl"
    print(f"{len(lists)} lists, {len(lists) // BATCH} steps, such as {lists[0]}", flush=True)
    print({"side": "embedder", **means(measure(data))}, flush=True)
    done = {(row["side"], row["seed"]) for row in read_rows(rows)}
    for seed in range(SEEDS.value):
        for side in SIDES:
            if (side, seed) not in done:
                add_row(rows, train_and_score(folder, data, side, seed))
    compare(folder, data)


if __name__ == "__main__":
    app.run(main)
