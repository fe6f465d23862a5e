"""transformers with the texts sorted by length before they are cut into batches, as
sentence-transformers does it."""

import numpy as np
import torch
import transformers

from sides import hugging_face, jobs


def text(job):
    model = hugging_face.load(transformers.AutoModelForSequenceClassification, job).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["folder"])
    columns, size = jobs.columns(job), job["batch"]
    order = jobs.longest_first(job)

    def run():
        outputs = np.empty((len(order), model.config.num_labels), "float32")
        with torch.inference_mode():
            for begin in range(0, len(order), size):
                rows = order[begin : begin + size]
                encoded = tokenizer(
                    *([column[row] for row in rows] for column in columns),
                    padding=True,
                    truncation=True,
                    max_length=job.get("max_length", 128),
                    return_tensors="pt",
                )
                outputs[rows] = model(**encoded).logits.float().numpy()
        return outputs

    return run
