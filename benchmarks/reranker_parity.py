"""Train a reranker on SQuAD's questions here and in sentence-transformers, by the same recipe.

    KERAS_BACKEND=torch OMP_NUM_THREADS=1 python benchmarks/reranker_parity.py \\
        --train train-v1.1.json --qnli dev.tsv --output rerankers

A question is paired with the sentence that holds its answer, and with the sentence of any paragraph
that BM25 ranks highest among those that do not hold it. Both sides begin with the same weights, an
embedder's and a new head on its pooler, and train one epoch by binary cross-entropy: AdamW, linear
warm-up over a tenth of the steps and linear decay, clipping at 1. The order of the pairs and the
dropout are each side's own, so scores differ as they do between seeds. Measured on QNLI's dev set:
how often the sentence with the answer ranks above the one without. Rows in the output folder are
kept, so that a killed run continues. Times are processor seconds.
"""

import json
import pathlib
import random
import time

import keras
import numpy as np
from absl import app, flags
from questions import read_qnli

import bert_keras
from bert_keras import corpora, search
from bert_keras.datasets import read_squad

TRAIN = flags.DEFINE_string("train", None, "A file in SQuAD's format.", required=True)
QNLI = flags.DEFINE_string("qnli", None, "dev.tsv of QNLI.", required=True)
OUTPUT = flags.DEFINE_string("output", None, "Folder of rows and models.", required=True)
PRESET = flags.DEFINE_string("preset", "minilm_l6_en_uncased", "An embedder.")
SEEDS = flags.DEFINE_integer("seeds", 2, "Seeds 0, 1, ...")
NUM_QUESTIONS = flags.DEFINE_integer("num_questions", 2000, "Questions to train on.")
NUM_DEV = flags.DEFINE_integer("num_dev", None, "Questions to measure on; all by default.")
RATE = flags.DEFINE_float("learning_rate", 2e-4, "Peak rate.")
BATCH, MAX_LENGTH = 16, 64


def answering_sentence(example):
    """Returns the sentence that holds the first answer, and all sentences of the paragraph."""
    sentences, end = corpora.split_sentences(example.context), 0
    for sentence in sentences:
        start = example.context.index(sentence, end)
        end = start + len(sentence)
        if start <= example.answers[0].start < end:
            return sentence
    return None


def training_pairs(path, num_questions):
    """Returns questions, sentences and relevance, half of it 1."""
    examples = read_squad(path).examples
    sentences = {
        sentence: None
        for text in dict.fromkeys(example.context for example in examples)
        for sentence in corpora.split_sentences(text)
    }
    index = search.BM25Index()
    index.add(list(sentences), ids=list(sentences))
    examples = [example for example in examples if answering_sentence(example)]
    chosen = random.Random(0).sample(examples, num_questions)
    hits = index.search([example.question for example in chosen], 10)
    pairs = []
    for example, found in zip(chosen, hits, strict=True):
        answer = example.answers[0].text
        wrong = [hit["id"] for hit in found if answer not in hit["id"]]
        if wrong:
            pairs += [(example.question, answering_sentence(example), 1.0)]
            pairs += [(example.question, wrong[0], 0.0)]
    return pairs


def ours(folder, pairs):
    reranker = bert_keras.Reranker.from_preset(folder, max_length=MAX_LENGTH)
    reranker.compile(learning_rate=RATE.value)
    queries, texts, relevance = map(list, zip(*pairs, strict=True))
    start = time.process_time()
    reranker.fit((queries, texts), relevance, batch_size=BATCH, epochs=1, verbose=2)
    seconds = time.process_time() - start
    reranker.save(folder.with_suffix(".keras"))
    return reranker.score, seconds


def theirs(folder, pairs, seed):
    import datasets
    from sentence_transformers import cross_encoder
    from sentence_transformers.cross_encoder import losses

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
    trainer = cross_encoder.CrossEncoderTrainer(
        model,
        arguments,
        train_dataset=datasets.Dataset.from_dict({name: list(each) for name, each in columns}),
        loss=losses.BinaryCrossEntropyLoss(model),
    )
    start = time.process_time()
    trainer.train()
    seconds = time.process_time() - start

    def score(queries, texts):
        return model.predict(list(zip(queries, texts, strict=True)), batch_size=32)

    return score, seconds


def main(argv):
    folder = pathlib.Path(OUTPUT.value)
    folder.mkdir(parents=True, exist_ok=True)
    pairs = training_pairs(TRAIN.value, NUM_QUESTIONS.value)
    print(f"{len(pairs)} pairs, {len(pairs) // BATCH} steps, such as {pairs[:2]}", flush=True)
    data, candidates = read_qnli(QNLI.value)
    candidates = candidates[: NUM_DEV.value]
    data = data._replace(queries=dict(list(data.queries.items())[: len(candidates)]))
    queries = [data.queries[n] for n, places in enumerate(candidates) for _ in places]
    texts = [data.corpus[place] for places in candidates for place in places]
    file = folder / "rows.jsonl"
    done = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    for seed in range(SEEDS.value):
        start = folder / f"seed_{seed}"
        if not start.exists():
            keras.utils.set_random_seed(seed)
            options = {"pooling": "pooler", "max_length": MAX_LENGTH}
            bert_keras.Reranker.from_preset(PRESET.value, **options).export_to_huggingface(start)
        for side in ("bert_keras", "sentence-transformers"):
            if any((row["side"], row["seed"]) == (side, seed) for row in done):
                continue
            keras.utils.set_random_seed(seed)
            score, seconds = (
                ours(start, pairs) if side == "bert_keras" else theirs(start, pairs, seed)
            )
            began = time.process_time()
            scores = np.split(score(queries, texts), np.cumsum([len(x) for x in candidates])[:-1])
            row = {"side": side, "seed": seed, "training_seconds": seconds}
            row["scoring_seconds"] = time.process_time() - began
            hits = [
                [
                    {"id": id, "score": float(x)}
                    for x, id in sorted(zip(values, ids, strict=True), reverse=True)
                ]
                for values, ids in zip(scores, candidates, strict=True)
            ]
            found = search.evaluate_retrieval(lambda queries, k, hits=hits: hits, data, 1)
            row["recall@1"] = found["recall@1"]
            print(row, flush=True)
            with open(file, "a") as rows:
                rows.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    app.run(main)
