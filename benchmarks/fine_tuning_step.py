"""Time one fine-tuning step and one inference call against transformers, turn by turn.

    KERAS_BACKEND=jax python benchmarks/fine_tuning_step.py

Both sides have the same weights (all-MiniLM-L6-v2), batch and number of threads. They run in turn,
A B A B, so that a change in the machine's speed meets both; the ratios of neighbouring rounds are
what counts. transformers runs eagerly with its fused attention and torch's fused AdamW.
"""

import json
import statistics
import time

import keras
import numpy as np
import torch
import transformers
from absl import app, flags

import bert_keras
from bert_keras.presets.resolve import resolve

FLAGS = flags.FLAGS
flags.DEFINE_string("preset", "minilm_l6_en_uncased", "Preset; both sides load its folder.")
flags.DEFINE_multi_string("shape", ["32x32", "16x128"], "batch x seq_len")
flags.DEFINE_integer("rounds", 7, "Rounds to time, after two that are not counted.")


def main(argv):
    folder = resolve(FLAGS.preset)
    for shape in FLAGS.shape:
        batch, seq_len = (int(size) for size in shape.split("x"))
        rng = np.random.default_rng(0)
        token_ids = rng.integers(1000, 20000, (batch, seq_len)).astype("int32")
        labels = rng.integers(0, 2, batch).astype("int32")
        ours, theirs = our_steps(folder, token_ids, labels), their_steps(folder, token_ids, labels)
        check_same_outputs(ours["logits"](), theirs["logits"]())
        for name in ("train", "predict"):
            report(name, shape, *take_turns(ours[name], theirs[name]))


def our_steps(folder, token_ids, labels):
    classifier = bert_keras.TextClassifier.from_preset(folder)
    classifier.compile(optimizer=bert_keras.AdamW(5e-5))
    inputs = {"token_ids": token_ids, "padding_mask": np.ones_like(token_ids)}
    return {
        "train": lambda: classifier.train_on_batch(inputs, labels),
        "predict": lambda: classifier.predict_on_batch(inputs),
        "logits": lambda: classifier.backbone.predict_on_batch(inputs)["pooled_output"],
    }


def their_steps(folder, token_ids, labels):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01, fused=True)
    ids, mask = torch.tensor(token_ids).long(), torch.ones(token_ids.shape).long()
    targets = torch.tensor(labels).long()

    def train():
        model.train()
        optimizer.zero_grad()
        loss = model(input_ids=ids, attention_mask=mask, labels=targets).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    def predict(part=model):
        model.eval()
        with torch.no_grad():
            return part(input_ids=ids, attention_mask=mask)

    return {
        "train": train,
        "predict": lambda: predict().logits.numpy(),
        "logits": lambda: predict(model.bert).pooler_output.numpy(),
    }


def check_same_outputs(ours, theirs):
    difference = float(np.abs(np.asarray(ours) - theirs).max())
    if difference > 1e-5:
        raise ValueError(f"Both sides must compute the same. They differ by {difference:.1e}.")


def take_turns(first, second):
    times = ([], [])
    for round_number in range(FLAGS.rounds + 2):
        for run, seconds in zip((first, second), times, strict=True):
            started = time.perf_counter()
            run()
            if round_number >= 2:
                seconds.append(time.perf_counter() - started)
    return times


def report(name, shape, ours, theirs):
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    print(
        json.dumps(
            {
                "what": f"{name} {shape}",
                "backend": keras.backend.backend(),
                "ours_ms": round(1000 * statistics.median(ours), 1),
                "transformers_ms": round(1000 * statistics.median(theirs), 1),
                "times_faster": round(statistics.median(ratios), 2),
                "from": round(min(ratios), 2),
                "to": round(max(ratios), 2),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    app.run(main)
