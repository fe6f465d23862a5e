"""transformers on PyTorch, eager, with its fused attention (sdpa), as its documentation has it."""

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
    """`transformers.pipeline`, the way that its users go."""
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
    inputs = tensors(jobs.token_inputs(job, batches=1))
    inputs["labels"] = torch.tensor(jobs.labels(job["batch"])).long()
    return training_step(model, inputs)


def pretraining_step(job):
    model = load(transformers.BertForPreTraining, job).train()
    inputs = tensors(jobs.token_inputs(job, batches=1))
    positions, originals = jobs.masked_positions(job)
    labels = np.full(inputs["input_ids"].shape, -100)
    np.put_along_axis(labels, positions, originals, axis=1)
    inputs["labels"] = torch.tensor(labels)
    inputs["next_sentence_label"] = torch.tensor(jobs.labels(job["batch"])).long()
    return training_step(model, inputs)


def training_step(model, inputs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01, fused=True)

    def run():
        optimizer.zero_grad()
        model(**inputs).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return run


def epoch(job):
    """One epoch of `Trainer` from raw text, padded by batch and grouped by length."""
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
                train_sampling_strategy="group_by_length",
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


def load(auto_class, job):
    # The int8 of others is held against its float32.
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.float32}
    dtype = dtypes[job.get("dtype", "float32")]
    return auto_class.from_pretrained(job["folder"], dtype=dtype)


def tensors(inputs):
    return {
        "input_ids": torch.tensor(inputs["token_ids"]).long(),
        "attention_mask": torch.tensor(inputs["padding_mask"]).long(),
    }
