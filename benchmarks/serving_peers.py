"""What people serve sentence vectors with otherwise, each as its guide says: for `serving.py`.

    pip install sentence-transformers litserve
    python benchmarks/serving_peers.py fastapi|litserve FOLDER PORT

FOLDER is a sentence-transformers model. Both answer text-embeddings-inference's `/embed`.
"""

import sys

import litserve
import pydantic
import sentence_transformers
import uvicorn
from fastapi import FastAPI


class Text(pydantic.BaseModel):
    """The body of a request."""

    inputs: str


def around_encode(folder, port):
    """A route around `encode`, in FastAPI's threads."""
    app, model = FastAPI(), sentence_transformers.SentenceTransformer(folder, device="cpu")

    @app.get("/health")
    def health():
        return {}

    @app.post("/embed")
    def embed(body: Text):
        return model.encode([body.inputs], show_progress_bar=False).tolist()

    uvicorn.run(app, port=port, log_level="warning")


class Embed(litserve.LitAPI):
    """LitServe's worker."""

    def setup(self, device):
        self.model = sentence_transformers.SentenceTransformer(sys.argv[2], device="cpu")

    def decode_request(self, request):
        return request["inputs"]

    def predict(self, texts):
        return self.model.encode(texts, show_progress_bar=False)

    def encode_response(self, vector):
        return [vector.tolist()]


def in_batches(folder, port):
    """LitServe, which gathers batches as this package's server does: up to 32 within 3 ms."""
    api = Embed(max_batch_size=32, batch_timeout=0.003, api_path="/embed")
    server = litserve.LitServer(api, accelerator="cpu")
    server.run("127.0.0.1", port, log_level="warning", generate_client_file=False)


if __name__ == "__main__":
    {"fastapi": around_encode, "litserve": in_batches}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
