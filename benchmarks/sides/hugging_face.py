"""transformers on PyTorch, eager, with its fused attention (sdpa), as documented."""

import numpy as np
import torch
import transformers

from sides import jobs

transformers.set_seed(0)
torch.set_num_threads(torch.get_num_threads())  # OMP_NUM_THREADS


def inference(job):
    model = load(transformers.AutoModel, job).eval()
    inputs = tensors(jobs.token_inputs(job))
    size = job["batch"]

    def run():
        outputs = []
        with torch.inference_mode():
            for begin in range(0, len(inputs["input_ids"]), size):
                part = {name: value[begin : begin + size] for name, value in inputs.items()}
                outputs.append(model(**part).last_hidden_state.float().numpy())
        return np.concatenate(outputs)

    return run


def text(job):
    """`transformers.pipeline`, as its users call it."""
    classifier = transformers.pipeline(
        "text-classification",
        model=load(transformers.AutoModelForSequenceClassification, job),
        tokenizer=transformers.AutoTokenizer.from_pretrained(job["folder"]),
        top_k=None,
        function_to_apply="none",
        batch_size=job["batch"],
        max_length=job.get("max_length", 128),
        truncation=True,
    )
    columns = jobs.columns(job)
    texts = columns[0]
    if len(columns) > 1:
        texts = [{"text": a, "text_pair": b} for a, b in zip(*columns, strict=True)]

    def run():
        answers = classifier(texts)
        return [[row["score"] for row in sorted(a, key=lambda row: row["label"])] for a in answers]

    return run


def train_step(job):
    model = load(transformers.AutoModelForSequenceClassification, job).train()
    return training_step(model, training_tensors(job))


def pretraining_step(job):
    return training_step(load(transformers.BertForPreTraining, job).train(), training_tensors(job))


def training_tensors(job, steps=1):
    """Returns the inputs and labels of this many batches, as a model takes them."""
    rows, labels = jobs.training_rows(job, steps)
    inputs = tensors(rows)
    if "mask_positions" in rows:
        of_tokens = np.full(rows["token_ids"].shape, -100)
        np.put_along_axis(of_tokens, rows["mask_positions"], labels["masked_lm"], axis=1)
        inputs["next_sentence_label"] = torch.tensor(labels["next_sentence"]).long()
        labels = of_tokens
    return inputs | {"labels": torch.tensor(labels).long()}


def training_step(model, inputs):
    step = stepper(model)
    return lambda: step(inputs) and None


def stepper(model, device="cpu", dtype="float32"):
    """Returns a function that trains a model on a batch and returns its loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01, fused=True)

    def step(inputs):
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=dtype == "bfloat16"):
            loss = model(**inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


def fine_tuning(job):
    return by_steps(job, transformers.AutoModelForSequenceClassification)


def pretraining(job):
    return by_steps(job, transformers.BertForPreTraining)


def prediction(job):
    """Logits of many batches on the GPU, where there is one; they are fetched at the end."""
    model, device = on_device(transformers.AutoModelForSequenceClassification, job)
    model.eval()

    def predict(steps):
        found = []
        with (
            torch.inference_mode(),
            torch.autocast(device, torch.bfloat16, enabled=job["dtype"] == "bfloat16"),
        ):
            for batch in batches(job, steps, device):
                del batch["labels"]
                # A CUDA graph writes each answer to the same place.
                found.append(model(**batch).logits.clone())
        torch.cat(found).float().cpu()

    return jobs.many_steps(job, predict)


def by_steps(job, auto_class):
    """Many steps on the GPU, where there is one."""
    model, device = on_device(auto_class, job)
    step = stepper(model.train(), device, job["dtype"])

    def fit(steps):
        for batch in batches(job, steps, device):
            loss = step(batch)
        loss.item()  # Waits for the device.

    return jobs.many_steps(job, fit)


def on_device(auto_class, job):
    """Returns a model with weights in float32, and the name of the device that holds it."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = load(
        auto_class, job | {"dtype": "float32"}, attn_implementation=job.get("attention", "sdpa")
    ).to(device)
    return torch.compile(model, mode=job["compiled"]) if job.get("compiled") else model, device


def batches(job, steps, device):
    """Yields batches on the device, sent there without waiting."""
    inputs = training_tensors(job, steps)
    if device == "cuda":
        inputs = {name: value.pin_memory() for name, value in inputs.items()}
    for begin in range(0, job["batch"] * steps, job["batch"]):
        rows = slice(begin, begin + job["batch"])
        yield {name: x[rows].to(device, non_blocking=True) for name, x in inputs.items()}


def epoch(job):
    """One epoch of `Trainer` from raw text, padded by batch and, by default, grouped by length."""
    model = load(transformers.AutoModelForSequenceClassification, job)
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["folder"])
    columns = jobs.columns(job)
    labels = jobs.labels(len(columns[0]))

    def run():
        encoded = tokenizer(*columns, truncation=True, max_length=job.get("max_length", 128))
        rows = [
            {"input_ids": ids, "labels": int(label)}
            for ids, label in zip(encoded["input_ids"], labels, strict=True)
        ]
        transformers.Trainer(
            model=model,
            args=transformers.TrainingArguments(
                output_dir=job["folder"] + "-trainer",
                per_device_train_batch_size=job["batch"],
                num_train_epochs=1,
                learning_rate=5e-5,
                warmup_steps=0.1,
                train_sampling_strategy=job.get("sampling", "group_by_length"),
                optim="adamw_torch_fused",
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                disable_tqdm=True,
                use_cpu=not torch.cuda.is_available(),
            ),
            train_dataset=rows,
            data_collator=transformers.DataCollatorWithPadding(tokenizer),
        ).train()

    return run


def arrays(job):
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["folder"])
    columns, size = jobs.columns(job), job["batch"]

    def run():
        for begin in range(0, len(columns[0]), size):
            tokenizer(
                *(column[begin : begin + size] for column in columns),
                padding=True,
                truncation=True,
                max_length=job.get("max_length", 128),
                return_tensors="np",
            )

    return run


def tokens(job):
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["folder"])
    (texts,) = jobs.columns(job)
    nothing_else = {"return_attention_mask": False, "return_token_type_ids": False}

    def run():
        encoded = tokenizer(texts, add_special_tokens=False, **nothing_else)
        return np.concatenate([np.array(ids, "int32") for ids in encoded["input_ids"]])

    return run


def load(auto_class, job, **options):
    # The int8 of the other sides is compared with its float32.
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.float32}
    dtype = dtypes[job.get("dtype", "float32")]
    return auto_class.from_pretrained(job["folder"], dtype=dtype, **options)


def tensors(inputs):
    return {
        "input_ids": torch.tensor(inputs["token_ids"]).long(),
        "attention_mask": torch.tensor(inputs["padding_mask"]).long(),
    }
