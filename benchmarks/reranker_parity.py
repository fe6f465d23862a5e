"""Train a reranker on SQuAD's questions here and in sentence-transformers, by the same recipe.

    KERAS_BACKEND=torch OMP_NUM_THREADS=1 python benchmarks/reranker_parity.py \\
        --train train-v1.1.json --dev dev-v1.1.json --output rerankers

A question is paired with the sentence that holds its answer, with the one that
`mine_hard_negatives` finds among those of all questions' paragraphs, and with the one that answers
another question, since hard negatives alone teach nothing within a few steps. Both sides begin
with the same weights, an embedder's and a new head on its pooler, see the same pairs in the same
batches, and train one epoch by binary cross-entropy: AdamW, linear warm-up over a tenth of the
steps and linear decay, clipping at 1. A seed chooses the head and the order of the pairs. Without
dropout, which each library draws its own way, both should learn the same.

Held out are questions of the dev set. The embedder finds ten sentences among those of their
paragraphs, and the reranker orders them; "fused" adds a tenth of its logit to the cosine.
Rows in the output folder are kept, so that a killed run continues. Times are processor seconds.
"""

import json
import pathlib
import random
import time

import keras
import numpy as np
from absl import app, flags

import bert_keras
from bert_keras import corpora, search
from bert_keras.datasets import read_squad

TRAIN = flags.DEFINE_string("train", None, "A file in SQuAD's format.", required=True)
DEV = flags.DEFINE_string("dev", None, "Another one, to measure on.", required=True)
OUTPUT = flags.DEFINE_string("output", None, "Folder of rows and models.", required=True)
PRESET = flags.DEFINE_string("preset", "minilm_l6_en_uncased", "An embedder.")
SEEDS = flags.DEFINE_integer("seeds", 3, "Seeds 0, 1, ...")
NUM_QUESTIONS = flags.DEFINE_integer("num_questions", 384, "Questions to train on.")
NUM_DEV = flags.DEFINE_integer("num_dev", 120, "Questions to measure on.")
NUM_HITS = flags.DEFINE_integer("num_hits", 10, "Sentences that are ranked anew.")
RATE = flags.DEFINE_float("learning_rate", 5e-4, "Peak rate.")
DROPOUT = flags.DEFINE_float("dropout", 0.0, "Rate of both sides.")
BATCH, MAX_LENGTH = 16, 64


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
    """Returns pairs to train on and questions with candidates, which the file keeps."""
    if not file.exists():
        embedder = bert_keras.TextEmbedder.from_preset(PRESET.value, max_length=MAX_LENGTH)
        texts = read_sentences(TRAIN.value, NUM_QUESTIONS.value)
        queries, right, hard = bert_keras.mine_hard_negatives(embedder, *texts)
        easy = right[len(right) // 2 :] + right[: len(right) // 2]
        pairs = [
            (query, text, float(texts is right))
            for texts in (right, hard, easy)
            for query, text in zip(queries, texts, strict=True)
        ]
        queries, right, corpus = read_sentences(DEV.value, NUM_DEV.value)
        index = search.Index()
        index.add(embedder.embed(corpus), ids=corpus)
        found = index.search(embedder.embed(queries), NUM_HITS.value)
        data = {"pairs": pairs, "queries": queries, "right": right, "hits": found}
        file.write_text(json.dumps(data))
    return json.loads(file.read_text())


class InOrder(keras.utils.PyDataset):
    """Batches of pairs, which `fit` does not sort by length."""

    def __init__(self, preprocessor, pairs):
        super().__init__()
        self.preprocessor, self.pairs = preprocessor, pairs

    def __len__(self):
        return len(self.pairs) // BATCH

    def __getitem__(self, n):
        rows = self.pairs[n * BATCH : (n + 1) * BATCH]
        queries, texts, relevance = map(list, zip(*rows, strict=True))
        return self.preprocessor((queries, texts)), np.array(relevance, "float32")[:, None]


def ours(folder, pairs):
    reranker = bert_keras.Reranker.from_preset(folder, max_length=MAX_LENGTH)
    reranker.compile(learning_rate=RATE.value)
    start = time.process_time()
    reranker.fit(InOrder(reranker.preprocessor, pairs), shuffle=False, epochs=1, verbose=2)
    seconds = time.process_time() - start
    reranker.save(folder.with_suffix(".keras"))
    return lambda *pairs: reranker.predict(pairs, verbose=0)[:, 0], seconds


def theirs(folder, pairs, seed):
    import datasets
    import torch
    from sentence_transformers import cross_encoder
    from sentence_transformers.cross_encoder import losses
    from torch.utils.data import BatchSampler, SequentialSampler

    class TrainerInOrder(cross_encoder.CrossEncoderTrainer):
        def get_batch_sampler(self, dataset, batch_size, drop_last, **kwargs):
            return BatchSampler(SequentialSampler(dataset), batch_size, drop_last)

    model = cross_encoder.CrossEncoder(str(folder), max_length=MAX_LENGTH, device="cpu")
    columns = zip(("query", "text", "label"), zip(*pairs, strict=True), strict=True)
    arguments = cross_encoder.CrossEncoderTrainingArguments(
        output_dir=str(folder) + "_theirs",
        per_device_train_batch_size=BATCH,
        num_train_epochs=1,
        learning_rate=RATE.value,
        warmup_steps=0.1,
        weight_decay=0.01,
        max_grad_norm=1.0,
        seed=seed,
        use_cpu=True,
        save_strategy="no",
        report_to="none",
        logging_steps=10,
    )
    trainer = TrainerInOrder(
        model,
        arguments,
        train_dataset=datasets.Dataset.from_dict({name: list(each) for name, each in columns}),
        loss=losses.BinaryCrossEntropyLoss(model),
    )
    start = time.process_time()
    trainer.train()
    seconds = time.process_time() - start

    def score(queries, texts):
        pairs = list(zip(queries, texts, strict=True))
        return model.predict(pairs, batch_size=32, activation_fn=torch.nn.Identity())

    return score, seconds


def measure(data, hits):
    """Returns recall@1 and nDCG@10 of hits."""
    corpus = {hit["id"]: hit["id"] for hits in data["hits"] for hit in hits}
    relevance = {n: {text: 1} for n, text in enumerate(data["right"])}
    data = search.RetrievalData(corpus, dict(enumerate(data["queries"])), relevance)
    found = search.evaluate_retrieval(lambda queries, top_k: hits, data, (1, 10))
    return {name: round(found[name], 4) for name in ("recall@1", "ndcg@10")}


def reranked(data, logits, of_embedder=0.0):
    """Returns the hits of `prepare` ordered by logits, and by a share of the embedder's scores."""
    logits = iter(logits)
    return [
        sorted(
            [{**hit, "score": float(next(logits)) + of_embedder * hit["score"]} for hit in hits],
            key=lambda hit: -hit["score"],
        )
        for hits in data["hits"]
    ]


def main(argv):
    folder = pathlib.Path(OUTPUT.value)
    folder.mkdir(parents=True, exist_ok=True)
    data = prepare(folder / "data.json")
    pairs = data["pairs"]
    print(f"{len(pairs)} pairs, {len(pairs) // BATCH} steps, such as {pairs[:2]}", flush=True)
    print({"side": "embedder", **measure(data, data["hits"])}, flush=True)
    queries = [
        query for query, hits in zip(data["queries"], data["hits"], strict=True) for _ in hits
    ]
    texts = [hit["id"] for hits in data["hits"] for hit in hits]
    file = folder / "rows.jsonl"
    done = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    for seed in range(SEEDS.value):
        start = folder / f"seed_{seed}"
        if not start.exists():
            keras.utils.set_random_seed(seed)
            options = {"pooling": "pooler", "dropout": DROPOUT.value, "max_length": MAX_LENGTH}
            options["backbone"] = dict.fromkeys(("dropout", "attention_dropout"), DROPOUT.value)
            bert_keras.Reranker.from_preset(PRESET.value, **options).export_to_huggingface(start)
        order = random.Random(seed).sample(pairs, len(pairs))
        for side in ("bert_keras", "sentence-transformers"):
            if any((row["side"], row["seed"]) == (side, seed) for row in done):
                continue
            keras.utils.set_random_seed(seed)
            score, seconds = (
                ours(start, order) if side == "bert_keras" else theirs(start, order, seed)
            )
            began = time.process_time()
            logits = score(queries, texts)
            row = {"side": side, "seed": seed, "training_seconds": seconds}
            row["scoring_seconds"] = time.process_time() - began
            row |= measure(data, reranked(data, logits))
            fused = measure(data, reranked(data, logits, of_embedder=10.0))
            row |= {f"fused {name}": value for name, value in fused.items()}
            print(row, flush=True)
            np.save(folder / f"{side}_{seed}.npy", logits)
            with open(file, "a") as rows:
                rows.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    app.run(main)
