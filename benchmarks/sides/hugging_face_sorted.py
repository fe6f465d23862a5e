"""transformers with the texts sorted by length before they are cut into batches, as
sentence-transformers does it."""

import torch
import transformers

from sides import hugging_face, jobs


def text(job):
    model = hugging_face.load(transformers.AutoModelForSequenceClassification, job).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["folder"])
    options = {"padding": True, "truncation": True, "max_length": job.get("max_length", 128)}

    @torch.inference_mode()
    def answer(*columns):
        return model(**tokenizer(*columns, return_tensors="pt", **options)).logits.float().numpy()

    return jobs.by_length(job, answer)
