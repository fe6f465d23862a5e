"""ColBERT: a vector for each token that counts, MaxSim, and folders of three layouts."""

import functools
import json
import string

import numpy as np
import pytest
from checks import assert_close, call, cases, check_task, compute, refusals, to_numpy
from theirs import outputs_of, reference_model
from tiny import ready_inputs, rows_of, tiny_backbone, tiny_preprocessor

import bert_keras

pytestmark = pytest.mark.once

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", "[unused0]", "[D]", "!"]
TEXTS = ["a b c", "d! e f !", "h"]
COLUMNS = (["a", "b", "c", "d"], ["a b", "b c", "c d", "d e"], ["e", "f!", "g", "h"])


def tiny_embedder(**options):
    settings = {"dim": 6, "query_marker": "[unused0]", "document_marker": "[D]"}
    settings |= {"query_length": 8, "query_expansion": 8, **options}
    backbone = tiny_backbone(vocabulary_size=len(VOCABULARY), initializer_range=0.3)
    preprocessor = tiny_preprocessor(vocabulary=VOCABULARY)
    return bert_keras.MultiVectorEmbedder(backbone, preprocessor, **settings)


# An embedder that no test changes.
shared = pytest.fixture(tiny_embedder, scope="module")


def test_it_keeps_the_contract_of_tasks(tmp_path):
    options = {"attend_to_expansion": True, "skipped_tokens": ["b"], "document_length": 9}
    check_task(tiny_embedder(**options), ready_inputs(3, 7), tmp_path, {"embed": (TEXTS,)})


def ids_of(text, marker):
    numbers = {token: i for i, token in enumerate(VOCABULARY)}
    tokens = ["[CLS]", marker, *text.replace("!", " !").split(), "[SEP]"]
    return [numbers[token] for token in tokens if token]


@pytest.mark.parametrize("attends", [False, True])
def test_vectors_are_projections_of_transformers_tokens(tmp_path, attends):
    reference = reference_model("BertModel", tmp_path, VOCABULARY)
    options = {"query_expansion": 8, "query_length": 8, "attend_to_expansion": attends, "dim": 6}
    with pytest.warns(UserWarning, match="start at random"):
        embedder = bert_keras.MultiVectorEmbedder.from_preset(
            tmp_path, document_marker="", **options
        )
    kernel = embedder.get_weights()[-1]
    for kind, marker in (("query", "[unused0]"), ("document", "")):
        for text, found in zip(TEXTS, embedder.embed(TEXTS, kind), strict=True):
            ids = np.array([ids_of(text, marker)])
            mask = np.ones_like(ids)
            counts = ids[0] != VOCABULARY.index("!")
            if kind == "query":
                room = [(0, 0), (0, 8 - ids.shape[1])]
                ids = np.pad(ids, room, constant_values=4)
                mask = np.pad(mask, room, constant_values=int(attends))
                counts = np.ones(8, bool)
            inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}
            hidden = outputs_of(reference, inputs)["last_hidden_state"][0] @ kernel
            expected = hidden / np.linalg.norm(hidden, axis=-1, keepdims=True)
            np.testing.assert_allclose(found, expected[counts], atol=1e-5)


@pytest.mark.each_backend
def test_scores_are_maxsim(shared):
    queries, documents = shared.embed(TEXTS, "query"), shared.embed(TEXTS)
    assert [len(query) for query in queries] == [8, 8, 8]
    assert [len(document) for document in documents] == [6, 6, 4]
    expected = [[(q @ d.T).max(1).sum() for d in documents] for q in queries]
    assert_close(shared.score(TEXTS, TEXTS), expected, 1e-5)
    assert_close(shared.score(TEXTS[0], documents), expected[0], 1e-5)
    hits = shared.semantic_search(TEXTS, TEXTS, top_k=2)
    assert [hit["index"] for hit in hits[0]] == np.argsort(-np.array(expected[0]))[:2].tolist()
    assert shared.embed([]) == [] and shared.score([], TEXTS).shape == (0, 3)
    # The loss sees the same numbers: vectors that do not count are zeros.
    rows = rows_of(shared, (TEXTS, TEXTS))
    vectors = to_numpy(call(shared, rows.inputs(np.arange(3), 12)))
    from bert_keras.training.similarities import similarity_matrix

    found = compute(functools.partial(similarity_matrix, "maxsim"), vectors[:, 0], vectors[:, 1])
    assert_close(found, expected, 1e-4)


def test_texts_are_cut_to_the_lengths_of_their_kind():
    embedder = tiny_embedder(query_length=5, query_expansion=None, document_length=6)
    long = "a b c d e f g h a b c d e f g h"
    assert [len(embedder.embed(long, kind)) for kind in ("query", "document")] == [5, 6]
    free = tiny_embedder(query_length=None, query_expansion=None, query_marker="")
    assert [len(free.embed(long, kind)) for kind in ("query", "document")] == [16, 16]


@cases(("ranking", None), ("distillation", np.arange(8.0).reshape(4, 2)))
def test_training_lowers_the_loss(objective, y):
    embedder = tiny_embedder(objective=objective)
    embedder.compile(learning_rate=1e-2, chunk_size=5)
    before = embedder.evaluate(COLUMNS, y, verbose=0)
    embedder.fit(COLUMNS, y, epochs=8, verbose=0)
    assert embedder.evaluate(COLUMNS, y, verbose=0) < before


SIMPLE = {"skipped_tokens": list(string.punctuation)}


@cases(
    ("sentence-transformers", {"skipped_tokens": ["a"], "query_length": None}),
    ("sentence-transformers", {"query_expansion": None, "attend_to_expansion": False}),
    ("pylate", {"attend_to_expansion": True, "skipped_tokens": ["a", "!"]}),
    ("pylate", {"query_expansion": None}),
    ("stanford", {"attend_to_expansion": True}),
    ("stanford", {"skipped_tokens": []}),
)
def test_each_layout_gives_the_embedder_back(tmp_path, layout, options):
    embedder = tiny_embedder(document_length=9, **SIMPLE | options)
    embedder.export_to_huggingface(tmp_path, layout=layout)
    again = bert_keras.MultiVectorEmbedder.from_preset(tmp_path)
    assert again.answer_settings() == embedder.answer_settings() and again.dim == 6
    for kind in ("query", "document"):
        for one, other in zip(again.embed(TEXTS, kind), embedder.embed(TEXTS, kind), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
    if layout == "stanford":
        config = json.loads((tmp_path / "config.json").read_text())
        assert config["architectures"] == ["HF_ColBERT"]


@pytest.mark.parametrize("prompt", ["a b ", "[unused0]a b "])
def test_a_prompt_of_pylate_follows_the_token_that_it_puts_first(tmp_path, prompt):
    embedder = tiny_embedder(document_length=9)
    embedder.export_to_huggingface(tmp_path, layout="pylate")
    path = tmp_path / "config_sentence_transformers.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"prompts": {"query": prompt}}))
    again = bert_keras.MultiVectorEmbedder.from_preset(tmp_path)
    (found,), (expected,) = again.embed(["c"], "query"), embedder.embed(["a b c"], "query")
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_folder_of_pylate_without_settings_does_not_fill_up_queries(tmp_path):
    embedder, plain = tiny_embedder(), tiny_embedder(query_expansion=None, query_marker="")
    embedder.export_to_huggingface(tmp_path, layout="pylate")
    path = tmp_path / "config_sentence_transformers.json"
    path.write_text(json.dumps({"model_type": "ColBERT"}))
    again = bert_keras.MultiVectorEmbedder.from_preset(tmp_path)
    assert len(again.embed("a b", "query")) == len(plain.embed("a b", "query")) == 4
    assert again.query_length is None


# The numbers of tokens are those of sentence-transformers 6.2, for `max_seq_length: 7`.
@pytest.mark.parametrize("layout", ["sentence-transformers", "pylate"])
@cases((5, None, [5, 7]), (None, 9, [7, 9]), (12, None, [12, 7]))
def test_kinds_without_a_length_are_cut_as_all_texts(tmp_path, layout, query, document, found):
    embedder = tiny_embedder(query_length=query, query_expansion=None, document_length=document)
    embedder.export_to_huggingface(tmp_path, layout=layout)
    lengths = {"query_length": query, "document_length": document}
    changed = {"sentence_bert_config.json": {"max_seq_length": 7}}
    changed["config_sentence_transformers.json"] = lengths if layout == "pylate" else {}
    for name, changes in changed.items():
        path = tmp_path / name
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    again = bert_keras.MultiVectorEmbedder.from_preset(tmp_path)
    assert [len(again.embed("a b c d e f g h " * 2, x)) for x in ("query", "document")] == found


def test_a_folder_with_other_modules_for_queries_is_refused(tmp_path):
    tiny_embedder().export_to_huggingface(tmp_path)
    modules = json.loads((tmp_path / "modules.json").read_text())
    types = {x["path"]: x["type"] for x in modules} | {"q": "SparseStaticEmbedding"}
    structure = {"document": [x["path"] for x in modules], "query": ["q"]}
    router = {"types": types, "structure": structure}
    (tmp_path / "router_config.json").write_text(json.dumps(router))
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "Router", "path": ""}]))
    with pytest.raises(ValueError, match="modules of their own for queries"):
        bert_keras.MultiVectorEmbedder.from_preset(tmp_path)


def test_an_embedder_s_folder_begins_a_new_projection(tmp_path):
    plain = bert_keras.TextEmbedder(tiny_embedder().backbone, tiny_preprocessor(16, VOCABULARY))
    plain.export_to_huggingface(tmp_path)
    with pytest.warns(UserWarning, match="start at random"):
        embedder = bert_keras.MultiVectorEmbedder.from_preset(
            tmp_path, query_length=8, query_expansion=8
        )
    assert embedder.embed("a", "query").shape == (8, 128)


@cases(
    ("1_Dense/config.json", {"bias": True}, "`bias"),
    ("1_Dense/config.json", {"activation_function": "torch.nn.Tanh"}, "activation_function"),
    ("2_MultiVectorMask/config.json", {"skiplist_tasks": ["query"]}, "skiplist_tasks"),
    ("2_MultiVectorMask/config.json", {"keep_only_token_ids": [1]}, "keep_only_token_ids"),
    ("sentence_bert_config.json", {"query_expansion": {"strategy": "all"}}, "strategy"),
)
def test_folders_that_ask_for_something_else_are_refused(tmp_path, name, value, message):
    tiny_embedder().export_to_huggingface(tmp_path)
    (tmp_path / name).write_text(json.dumps(value))
    with pytest.raises(ValueError, match=message):
        bert_keras.MultiVectorEmbedder.from_preset(tmp_path)


@pytest.mark.parametrize("kind", ["MultiVectorMask", "Normalize"])
@pytest.mark.parametrize("options", [{}, {"query_expansion": None}, {"attend_to_expansion": True}])
def test_folders_without_a_module_that_changes_scores_are_refused(tmp_path, kind, options):
    tiny_embedder(**options).export_to_huggingface(tmp_path)
    path = tmp_path / "modules.json"
    modules = [module for module in json.loads(path.read_text()) if kind not in module["type"]]
    path.write_text(json.dumps(modules))
    if options and kind == "MultiVectorMask":
        bert_keras.MultiVectorEmbedder.from_preset(tmp_path)
        return
    with pytest.raises(ValueError, match=rf"must list \['{kind}'\]"):
        bert_keras.MultiVectorEmbedder.from_preset(tmp_path)


test_what_does_not_fit_is_refused = refusals(
    (lambda e: tiny_embedder(dim=0), "`dim`"),
    (lambda e: tiny_embedder(query_length=17), "`query_length`"),
    (lambda e: tiny_embedder(query_expansion=9), "from 3 to 8.*`query_length`"),
    (lambda e: e.embed(TEXTS, "passage"), "`kind`"),
    (lambda e: e.predict(TEXTS), "Call `embed`"),
    (lambda e: e.score("a", TEXTS, kind="query"), TypeError, "`score` has no argument 'kind'"),
    (lambda e: e.score(np.zeros((2, 3), "f4"), TEXTS), r"\(num_tokens, 6\)"),
    (
        lambda e: e.fit((*COLUMNS[:2], [f"{x} " for x in COLUMNS[1]])),
        "must differ from the positive",
    ),
    (
        lambda e: tiny_embedder(skipped_tokens=["a"]).export_to_huggingface("x", layout="stanford"),
        "layout='sentence-transformers'",
    ),
    of="shared",
)
