r"""Which family learns most from the same text in the same time, at a size for a laptop.

    python benchmarks/family_ablations.py --data_dir gutenberg --sst2_dir SST-2 --mrpc_dir MRPC \
        --wnut17_dir wnut17 --squad_dir squad_v1 --output_dir families

Each family has 4 layers, 256 wide, the vocabulary of `bert_mini_en_gutenberg`, and is trained from
random weights as its paper does on the same books, by the same optimizer, for `--minutes` of one
processor: short rows first, from which a small model learns sooner, then longer ones. A step's time
is measured first, and says how many steps fit. Then it is fine-tuned on `--sample` examples of each
task, the mean of the tokens as a text's vector in all of them, since not all have a pooler.

What differs: BERT learns masked tokens and next sentences. RoBERTa learns masked tokens alone, on
full sentences. ELECTRA finds tokens that a generator of a quarter of the width replaced, on full
sentences. ALBERT has one layer's weights for all four, narrower embeddings, masked n-grams and the
order of sentences. SpanBERT guesses spans, from their borders too. ModernBERT masks 30 %; its gated
layers are narrower, so that they have as many weights. The last rows are not trained here: weights
at random, and the package's own checkpoint, which was trained longer.

Signs, on three books that nobody was trained on: `right` and `perplexity` at tokens masked as BERT
masks, in full sentences, the same for all that guess tokens. BCE of ELECTRA's detector, beside the
entropy of the rate of replaced tokens, below which it must be, and the area under its curve. Random
documents and swapped order: the share of pairs that are told rightly, where about half are false.
SBO: the loss of tokens by their span's borders, beside that of knowing each one's frequency.

One JSON a family and seed in `--output_dir`, written after each part: the same command goes on
where a killed one stopped; other flags need another folder. Prints a table in Markdown: means, and
in brackets the lowest and the highest seed. KERAS_BACKEND chooses the backend; OMP_NUM_THREADS=1
keeps PyTorch to one processor.
"""

import functools
import json
import math
import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import books
import keras
import numpy as np
from absl import app, flags

import bert_keras
from bert_keras import datasets, metrics
from bert_keras.preprocessing import Masking
from bert_keras.training import AdamW, WarmupDecay

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(books)  # for --help
flags.DEFINE_string("sst2_dir", None, "Folder of SST-2.", required=True)
flags.DEFINE_string("mrpc_dir", None, "Folder of MRPC.", required=True)
flags.DEFINE_string("wnut17_dir", None, "Folder of WNUT-17.", required=True)
flags.DEFINE_string("squad_dir", None, "Folder of SQuAD 1.1.", required=True)
flags.DEFINE_list("families", None, "Rows to run, by name; without it all.")
flags.DEFINE_integer("seeds", 2, "Runs of each family.", 1)
flags.DEFINE_float("minutes", 30, "Of the processor, to pre-train each.", 0.0)
flags.DEFINE_integer("sample", 4000, "Examples of each fine-tuned task but SQuAD.", 1)
flags.DEFINE_integer("questions", 2000, "Questions of SQuAD to train on, and to measure on.", 1)
flags.DEFINE_integer("epochs", 3, "Times to go through them.", 1)
flags.DEFINE_integer("batch_size", 64, "Rows of a step; of longer rows as many tokens.", 1)
flags.DEFINE_list("sequence_length", ["32", "128"], "Tokens of a row, one number a phase.")
flags.DEFINE_list("shares", ["0.6", "0.4"], "Share of the time of each phase.")
flags.DEFINE_integer("heldout_tokens", 65536, "Tokens that signs are measured on.", 1)
flags.DEFINE_float("learning_rate", 1e-3, "Peak rate of pre-training.")
flags.DEFINE_float("fine_tuning_rate", 3e-4, "Peak rate of fine-tuning.")
flags.DEFINE_string("dtype", "float32", "float32, or mixed_bfloat16 where it is faster.")


class Family(NamedTuple):
    """What a family has of its own: its encoder, and what its paper trains."""

    backbone: type = bert_keras.BertBackbone
    task: type = bert_keras.MaskedLM
    objective: str = "full_sentences"
    masking: Mapping = MappingProxyType({})
    sizes: Mapping = MappingProxyType({})


SIZES = {"num_layers": 4, "num_heads": 4, "hidden_dim": 256, "intermediate_dim": 1024}
GENERATOR = {"num_heads": 1, "hidden_dim": 64, "intermediate_dim": 256}
COMMON = {"dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.0625}
FAMILIES = {
    "BERT": Family(task=bert_keras.Pretraining, objective="next_sentence"),
    "RoBERTa": Family(bert_keras.RobertaBackbone, sizes={"padding_id": 0}),
    "ELECTRA": Family(
        bert_keras.ElectraBackbone,
        bert_keras.ReplacedTokenDetection,
        masking={"mask_share": 0.85, "random_share": 0.0},
        sizes={"embedding_dim": 256},
    ),
    "ALBERT": Family(
        bert_keras.AlbertBackbone,
        bert_keras.Pretraining,
        objective="sentence_order",
        masking={"strategy": "n_grams"},
        sizes={"embedding_dim": 128},
    ),
    "SpanBERT": Family(task=bert_keras.SpanBoundary, masking={"strategy": "spans"}),
    "ModernBERT": Family(
        bert_keras.ModernBertBackbone, masking={"rate": 0.3}, sizes={"intermediate_dim": 683}
    ),
    "not pre-trained": Family(),
    books.PRESET: Family(),
}


def main(argv):
    bert_keras.keep_freed_memory()
    books.check_settings("families")
    found = {}
    for name in FLAGS.families or FAMILIES:
        plan(name)
    for seed in range(FLAGS.seeds):
        for name in FLAGS.families or FAMILIES:
            found.setdefault(name, []).append(run(name, seed))
    print(table(found))


def run(name, seed):
    """Returns the results of a family and seed; does what its file has not."""
    path = Path(FLAGS.output_dir, f"{name}_{seed}.json".replace(" ", "_"))
    folder = str(path.with_suffix(""))
    parts = {"pretrained": functools.partial(pretrain, name, seed, folder)}
    for task, measure in TASKS.items():
        parts[task] = functools.partial(measure, folder, seed)
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for part in [part for part in parts if part not in found]:
        keras.utils.set_random_seed(seed)
        started = time.process_time()
        found[part] = parts[part]()
        found[f"{part} seconds"] = time.process_time() - started
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"{name}, seed {seed}: {part} {found[part]}", flush=True)
    return found


# Pre-training


def make_model(family):
    """Returns what is trained, with random weights."""
    length = int(FLAGS.sequence_length[-1])
    preprocessor = bert_keras.TextPreprocessor(books.tokenizer(), max_length=length)
    sizes = {"vocabulary_size": books.tokenizer().vocabulary_size, "max_sequence_length": length}
    sizes |= {**SIZES, **COMMON, **family.sizes, "dtype": FLAGS.dtype}
    backbone, masking = family.backbone(**sizes), Masking(**family.masking)
    if family.task is not bert_keras.ReplacedTokenDetection:
        return family.task(backbone, preprocessor, masking=masking)
    return bert_keras.ReplacedTokenDetection(
        bert_keras.MaskedLM(
            family.backbone(**{**sizes, **GENERATOR}), preprocessor, masking=masking
        ),
        bert_keras.ReplacedTokenDetector(backbone, preprocessor),
    )


def read(family, model, part, length, objective=None, **options):
    """Returns the batches that a model is trained or measured on."""
    has_pairs = family.task is bert_keras.Pretraining
    return books.batches(
        part,
        objective or family.objective,
        length,
        FLAGS.batch_size * int(FLAGS.sequence_length[0]) // length,
        masking=Masking(**family.masking),
        has_next_sentence=has_pairs,
        input_names=model.backbone.input_names,
        **options,
    )


def prepare(model, steps):
    """Gives a model the optimizer and the rates of a whole run."""
    schedule = WarmupDecay(FLAGS.learning_rate, max(2, steps), warmup=0.1)
    model.compile(AdamW(schedule, weight_decay=0.01, global_clipnorm=1.0))


def fit(family, model, length, steps, seed):
    """Trains on so many steps of one length; returns the processor's seconds."""
    data = read(family, model, "train", length, seed=seed)
    started = time.process_time()
    if steps:
        model.fit(data, steps_per_epoch=steps, shuffle=False, verbose=0)
    return time.process_time() - started


def plan(name):
    """Returns how many steps of each length fit into `--minutes`, the same for all seeds."""
    path = Path(FLAGS.output_dir, f"{name}_steps.json".replace(" ", "_"))
    if not path.exists():
        family, steps = FAMILIES[name], {}
        is_trained = name not in ("not pre-trained", books.PRESET)
        model = make_model(family)
        prepare(model, 1000)
        for length, share in zip(FLAGS.sequence_length, FLAGS.shares, strict=True):
            fit(family, model, int(length), 2, seed=0)  # Compiles.
            # Other programs lengthen some of them.
            seconds = min(fit(family, model, int(length), 4, seed=0) / 4 for _ in range(3))
            steps[length] = is_trained * round(float(share) * FLAGS.minutes * 60 / seconds)
        path.write_text(json.dumps(steps) + "\n", encoding="utf-8")
    return {int(n): steps for n, steps in json.loads(path.read_text(encoding="utf-8")).items()}


def pretrain(name, seed, folder):
    """Trains a family, saves it, and returns sizes, seconds and signs."""
    family, length = FAMILIES[name], int(FLAGS.sequence_length[-1])
    phases = plan(name)
    keras.utils.set_random_seed(seed)
    model = make_model(family)
    if name == books.PRESET:
        model = bert_keras.MaskedLM.from_preset(name, dtype=FLAGS.dtype)
    prepare(model, sum(phases.values()))
    seconds = sum(fit(family, model, n, steps, seed) for n, steps in phases.items())
    model.save_to_preset(folder)
    found = {"parameters": model.backbone.count_params(), "seconds": seconds}
    found |= {"steps": sum(phases.values()), "own": measure(family, model, length)}
    if name == "BERT":
        found["order"] = measure(family, model, length, "sentence_order")
    if name == "ALBERT":
        found["random"] = measure(family, model, length, "next_sentence")
    if name == "SpanBERT":
        found["unigram"] = unigram_loss(family, model, length)
    if name != "ELECTRA":
        masked = bert_keras.MaskedLM.from_preset(folder)
        found["masked"] = measure(Family(), masked, length)
    return found


def measure(family, model, length, objective=None):
    """Returns what `evaluate` says of held-out books, masked always alike."""
    data = read(family, model, "heldout", length, objective, shuffle=False)
    steps = FLAGS.heldout_tokens // (data.batch_size * length)
    return model.evaluate(data, steps=steps, verbose=0, return_dict=True)


def unigram_loss(family, model, length):
    """Returns the loss of knowing how frequent each masked token is, and nothing else."""
    counts = np.ones(books.tokenizer().vocabulary_size)
    data = read(family, model, "train", length)
    for step in range(200):
        np.add.at(counts, data[step][0]["token_ids"], 1)
    counts[books.tokenizer().special_token_ids] = 0
    chances = counts / counts.sum()
    data, losses = read(family, model, "heldout", length, shuffle=False), []
    for step in range(FLAGS.heldout_tokens // (data.batch_size * length)):
        _, labels, weights = data[step]
        losses.append(-np.log(chances[labels[weights > 0]]))
    return float(np.concatenate(losses).mean())


# Fine-tuning


def tuned(task, folder, *data, **options):
    """Returns a task on a pre-trained encoder, fine-tuned."""
    length = int(FLAGS.sequence_length[-1])
    model = task.from_preset(folder, **{"max_length": length, "dtype": FLAGS.dtype, **options})
    model.compile(learning_rate=FLAGS.fine_tuning_rate)
    model.fit(*data, epochs=FLAGS.epochs, batch_size=32, verbose=0)
    return model


def sampled(examples, size, seed):
    """Returns so many of the examples, drawn by the seed."""
    return examples.take(np.random.default_rng(seed).permutation(len(examples))[:size])


def accuracy(glue_task, flag, folder, seed):
    """Returns the accuracy on the dev set of a GLUE task."""
    train = sampled(datasets.load_glue(glue_task, FLAGS[flag].value, "train"), FLAGS.sample, seed)
    dev = datasets.load_glue(glue_task, FLAGS[flag].value, "dev")
    options = {"num_classes": 2, "pooling": "mean"}
    model = tuned(bert_keras.TextClassifier, folder, train.texts, train.labels, **options)
    return float((model.predict(dev.texts, verbose=0).argmax(-1) == dev.labels).mean())


def entity_f1(folder, seed):
    """Returns the F1 of entities on WNUT-17's dev set."""
    train = datasets.read_conll(os.path.join(FLAGS.wnut17_dir, "wnut17train.conll"))
    dev = datasets.read_conll(os.path.join(FLAGS.wnut17_dir, "emerging.dev.conll"))
    names = datasets.tag_names(train, dev)
    train, options = (
        sampled(train, FLAGS.sample, seed),
        {"num_classes": len(names), "label_names": names},
    )
    model = tuned(bert_keras.TokenClassifier, folder, train.words, train.tags, **options)
    return model.evaluate_tags(dev.words, dev.tags)["f1"]


def answer_f1(folder, seed):
    """Returns the F1 of answers to `--questions` of SQuAD's dev set, in percent."""
    paths = [next(Path(FLAGS.squad_dir).glob(f"{part}-v1.1*")) for part in ("train", "dev")]
    parts = [datasets.read_squad(path).examples for path in paths]
    rng = np.random.default_rng(seed)
    train, dev = (
        [part[i] for i in rng.permutation(len(part))[: FLAGS.questions]] for part in parts
    )
    model = tuned(bert_keras.QuestionAnswering, folder, train, stride=64, max_question_length=32)
    texts = {e.id: best.spans[0].text for e, best in zip(dev, model.n_best(dev, 1), strict=True)}
    return metrics.squad_v1_scores(
        {e.id: [answer.text for answer in e.answers] for e in dev}, texts
    )["f1"]


TASKS = {
    "SST-2 accuracy": functools.partial(accuracy, "SST-2", "sst2_dir"),
    "MRPC accuracy": functools.partial(accuracy, "MRPC", "mrpc_dir"),
    "WNUT-17 F1": entity_f1,
    "SQuAD F1": answer_f1,
}


# The table


def table(found):
    """Returns the table in Markdown, a row a family."""
    columns = ["parameters", "steps", "seconds", "right", "perplexity", "signs", *TASKS]
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, runs in found.items():
        of = [run["pretrained"] for run in runs]
        cells = [f"{of[0]['parameters']:,}", str(of[0]["steps"])]
        cells.append(f"{statistics.mean(run['seconds'] for run in of):.0f}")
        masked = [run["masked"] for run in of if "masked" in run]
        cells += [
            books.cell([m["accuracy"] for m in masked]),
            books.cell([m["perplexity"] for m in masked], 0),
        ]
        cells.append(
            "; ".join(f"{sign} {books.cell(values)}" for sign, values in signs(of).items())
        )
        cells += [
            books.cell([run[task] for run in runs], 1 if "SQuAD" in task else 3) for task in TASKS
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def signs(runs):
    """Returns what a family's own objective is judged by: name -> values of the seeds."""
    of = {}
    for run in runs:
        own, values = run["own"], {}
        if "detection_auc" in own:
            rate = own["detection_fake_rate"]
            values["BCE"] = own["detection_loss"]
            values["entropy"] = -rate * math.log(rate) - (1 - rate) * math.log(1 - rate)
            values["AUC"] = own["detection_auc"]
        if "next_sentence_accuracy" in own:
            values["random documents"] = run.get("random", own)["next_sentence_accuracy"]
            values["swapped order"] = run.get("order", own)["next_sentence_accuracy"]
        if "span_boundary_perplexity" in own:
            values["SBO"] = math.log(own["span_boundary_perplexity"])
            values["unigrams"] = run["unigram"]
        for name, value in values.items():
            of.setdefault(name, []).append(value)
    return of


if __name__ == "__main__":
    app.run(main)
