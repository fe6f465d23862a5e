"""Replicas of an exported model under Ray Serve: `serve run ray_serve:app`, in this folder.

    curl localhost:8000 -H 'Content-Type: application/json' -d '{"text": "What a film!"}'

Needs `ray[serve]`, onnxruntime and this package, of which only `bert_keras.export.runtime` is used.
"""

import os

from ray import serve

from bert_keras.export import runtime

FOLDER = os.environ.get("MODEL", os.path.abspath("models/sentiment"))


@serve.deployment(num_replicas=2, max_ongoing_requests=256)
class Classifier:
    def __init__(self, folder):
        self.model = runtime.load(folder)

    @serve.batch(max_batch_size=32, batch_wait_timeout_s=0.003)
    async def classify(self, texts):
        return self.model.classify(texts)

    async def __call__(self, request):
        return await self.classify((await request.json())["text"])


app = Classifier.bind(FOLDER)
