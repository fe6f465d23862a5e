"""Folders of sentence-transformers give the vectors that its modules give."""

import json
import shutil

import keras
import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch
from checks import cases
from files import write_json
from scipy.spatial import distance
from small_tokenizers import byte_pair_tokenizer
from tiny import VOCABULARY, rows_of, tiny_backbone, tiny_preprocessor

import bert_keras
from bert_keras.tokenizers.tokenizer_files import SENTENCE_FILES

TEXTS = ["a b c", "d e f g h", "h"]
TORCH = "torch.nn.modules"
MODULES = "sentence_transformers.models"
# One case of a table runs on JAX too.
ON_JAX = pytest.mark.also_on("jax")
pytestmark = [pytest.mark.once, pytest.mark.usefixtures("shared_backbones")]


def list_modules(folder, *modules):
    """Writes modules.json: each module is the name of its kind and that of its folder."""
    listed = [{"type": f"{MODULES}.{kind}", "path": path} for kind, path in modules]
    write_json(folder / "modules.json", listed)


def tiny_embedder(**options):
    options = {"preprocessor": tiny_preprocessor(), "normalize": False, **options}
    return bert_keras.TextEmbedder(tiny_backbone(initializer_range=0.3), **options)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    keras.utils.set_random_seed(0)
    tiny_embedder().export_to_huggingface(folder := tmp_path_factory.mktemp("exported"))
    return folder


@pytest.fixture
def folder(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "folder")


def add_dense(folder, **config):
    """Adds a dense layer and a Normalize; returns its kernel and bias."""
    rng = np.random.default_rng(0)
    kernel, bias = rng.normal(size=(6, 16)).astype("f4"), rng.normal(size=6).astype("f4")
    write_json(folder / "2_Dense/config.json", {"in_features": 16, "out_features": 6, **config})
    tensors = {"linear.weight": kernel} | ({"linear.bias": bias} if config["bias"] else {})
    safetensors.numpy.save_file(tensors, folder / "2_Dense/model.safetensors")
    modules = (("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense"))
    list_modules(folder, *modules, ("Normalize", "3_Normalize"))
    return kernel, bias * config["bias"]


def gelu(x):
    return keras.ops.convert_to_numpy(keras.ops.gelu(x, approximate=False))


@cases(
    pytest.param("activation.Tanh", np.tanh, True, marks=ON_JAX),
    ("linear.Identity", lambda x: x, False),
    ("activation.ReLU", lambda x: np.maximum(x, 0), True),
    ("activation.GELU", gelu, True),
    ("activation.Sigmoid", lambda x: 1 / (1 + np.exp(-x)), True),
    ("activation.SiLU", lambda x: x / (1 + np.exp(-x)), True),
)
def test_a_dense_layer_projects_the_pooled_vector(folder, activation, function, bias):
    activation = f"{TORCH}.{activation}"
    pooled = bert_keras.TextEmbedder.from_preset(folder).embed(TEXTS)
    kernel, offset = add_dense(folder, activation_function=activation, bias=bias)
    expected = function(pooled @ kernel.T + offset)
    expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
    embedder = bert_keras.TextEmbedder.from_preset(folder)
    np.testing.assert_allclose(embedder.embed(TEXTS), expected, atol=1e-5)
    embedder.export_to_huggingface(folder / "again")
    config = json.loads((folder / "again/2_Dense/config.json").read_text())
    assert (config["activation_function"], config["bias"]) == (activation, bias)


@pytest.mark.also_on("jax")
def test_each_format_keeps_what_a_folder_brings(folder):
    add_dense(folder, activation_function=f"{TORCH}.activation.Tanh", bias=True)
    add_prompts(folder, similarity_fn_name="manhattan")
    embedder = bert_keras.TextEmbedder.from_preset(folder)
    assert embedder.pooling == "mean"
    expected = embedder.embed(TEXTS)
    for again in written(embedder, folder):
        assert again.similarity == embedder.similarity == "manhattan"
        assert again.prompts == embedder.prompts == PROMPTS
        assert again.default_prompt == "query"
        assert again.embed([]).shape == (0, 6)
        np.testing.assert_allclose(again.embed(TEXTS), expected, atol=1e-5)


def written(embedder, folder):
    """Yields the embedder as each format gives it back."""
    embedder.save(folder / "saved.keras")
    yield keras.saving.load_model(folder / "saved.keras")
    for write in (embedder.save_to_preset, embedder.export_to_huggingface):
        write(folder / "written")
        yield type(embedder).from_preset(folder / "written")
        shutil.rmtree(folder / "written")


def test_a_dense_layer_in_pytorch_s_format_is_read(folder):
    add_dense(folder, activation_function=f"{TORCH}.activation.Tanh", bias=True)
    expected = bert_keras.TextEmbedder.from_preset(folder).embed(TEXTS)
    path = folder / "2_Dense/model.safetensors"
    torch.save(safetensors.torch.load_file(path), path.with_name("pytorch_model.bin"))
    path.unlink()
    np.testing.assert_array_equal(
        bert_keras.TextEmbedder.from_preset(folder).embed(TEXTS), expected
    )


def test_a_user_s_projection_replaces_the_dense_layer(folder):
    add_dense(folder, activation_function=f"{TORCH}.activation.Tanh", bias=True)
    with pytest.warns(UserWarning, match="other \\['projection'\\]"):
        embedder = bert_keras.TextEmbedder.from_preset(folder, projection={"units": 3})
    assert embedder.embed("a").shape == (3,)
    assert bert_keras.TextEmbedder.from_preset(folder, projection=None).embed("a").shape == (16,)
    only_dense = bert_keras.TextEmbedder.from_preset(folder, frozen="backbone")
    assert [x.path.split("/", 1)[1] for x in only_dense.trainable_variables] == [
        "head/dense/kernel",
        "head/dense/bias",
    ]


@pytest.mark.filterwarnings("ignore:.*start at random")
def test_further_pre_training_keeps_the_pooling(folder, tmp_path):
    write_json(folder / "1_Pooling/config.json", {"pooling_mode": "cls"})
    bert_keras.MaskedLM.from_preset(folder).save_to_preset(tmp_path / "further")
    for source in (folder, tmp_path / "further"):
        for task in (bert_keras.TextClassifier, bert_keras.FewShotClassifier):
            assert task.from_preset(source, num_classes=2).pooling == "cls"
    assert bert_keras.TextEmbedder.from_preset(tmp_path / "further").pooling == "cls"


def add_other_dense(folder, **changes):
    config = {"activation_function": f"{TORCH}.activation.Tanh", "bias": True}
    add_dense(folder, **config | changes)


PROMPTS = {"query": "a b: ", "document": "", "search.code": "g"}


def add_prompts(folder, **config):
    config = {"prompts": PROMPTS, "default_prompt_name": "query", **config}
    write_json(folder / "config_sentence_transformers.json", config)


def add_lengths(folder, **lengths):
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 16, **lengths})


@cases(
    ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
    ({"pooling_mode_max_tokens": True}, "max"),
    ({"embedding_dimension": 16, "pooling_mode": "cls"}, "cls"),
    ({}, "mean"),
)
def test_a_folder_brings_its_settings(folder, pooling_config, expected):
    write_json(folder / "1_Pooling/config.json", pooling_config)
    embedder = bert_keras.TextEmbedder.from_preset(folder)
    assert (embedder.pooling, embedder.normalize) == (expected, False)
    assert embedder.preprocessor.max_length == 16
    modules = ("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")
    list_modules(folder, *modules)
    embedder = bert_keras.TextEmbedder.from_preset(folder, pooling="mean", max_length=12)
    assert (embedder.pooling, embedder.normalize) == ("mean", True)
    assert embedder.preprocessor.max_length == 12


@pytest.mark.parametrize("name", [None, "cosine", "dot", "euclidean", "manhattan"])
def test_a_folder_brings_its_similarity(folder, name):
    """Everything that compares vectors uses it."""
    add_prompts(folder, similarity_fn_name=name, default_prompt_name=None)
    metric = {"euclidean": "euclidean", "manhattan": "cityblock"}.get(name)
    embedder = bert_keras.TextEmbedder.from_preset(folder)
    assert embedder.similarity == (name or "cosine")
    assert embedder.answer_settings()["similarity"] == embedder.similarity
    x, y = embedder.embed(TEXTS, "query"), embedder.embed(TEXTS, "document")
    expected = -distance.cdist(x, y, metric) if metric else x @ y.T
    if embedder.similarity == "cosine":
        expected = 1 - distance.cdist(x, y, "cosine")
    np.testing.assert_allclose(embedder.similarities(x, y), expected, atol=1e-4)
    pairs = embedder.similarities_of_pairs(x, y)
    np.testing.assert_allclose(pairs, expected.diagonal(), atol=1e-4)
    for hits, row in zip(embedder.semantic_search(TEXTS, TEXTS), expected, strict=True):
        found = [(hit["index"], hit["score"]) for hit in hits]
        best = np.argsort(-row, kind="stable")[:5]
        assert found == [(n, pytest.approx(row[n], abs=1e-4)) for n in best]
    add_prompts(folder, similarity_fn_name="angle")
    with pytest.raises(ValueError, match="similarity_fn_name"):
        bert_keras.TextEmbedder.from_preset(folder)


@cases(
    ("1_Pooling/config.json", {"pooling_mode": ["mean", "max"]}, "pooling"),
    ("1_Pooling/config.json", {"pooling_mode_weightedmean_tokens": True}, "weightedmean"),
    ("1_Pooling/config.json", [], "JSON object"),
    ("modules.json", {"a": 1}, "JSON list"),
    ("modules.json", ["Transformer"], "must list modules"),
    ("modules.json", [{"type": "a.Transformer", "path": ""}], "Supported: Transformer"),
    (
        "modules.json",
        [{"type": "Transformer", "path": ""}, {"type": "Pooling", "path": "../other"}],
        "outside its folder",
    ),
)
def test_settings_that_cannot_be_met_are_refused(folder, name, value, message):
    write_json(folder / name, value)
    with pytest.raises(ValueError, match=message):
        bert_keras.TextEmbedder.from_preset(folder)
    if name != "modules.json" or not isinstance(value, dict):
        embedder = bert_keras.TextEmbedder.from_preset(folder, pooling="cls", normalize=True)
        assert embedder.pooling == "cls"
        assert embedder.preprocessor.max_length == 16


@cases(
    (
        add_other_dense,
        {"activation_function": f"{TORCH}.activation.Softshrink"},
        "'Softshrink'",
    ),
    (add_other_dense, {"activation_function": "mine.Tanh"}, "'mine.Tanh'"),
    (add_other_dense, {"activation_function": 1}, "one of .*Received: 1"),
    (add_other_dense, {"use_residual": True}, "use_residual"),
    (add_other_dense, {"module_input_name": "token_embeddings"}, "token_embeddings"),
    *(
        (add_prompts, {"prompts": prompts}, "`prompts` must be a dict")
        for prompts in ({"query": 1}, ["query: "], {"query": None})
    ),
    (add_prompts, {"default_prompt_name": "passage"}, "`default_prompt` must be one of"),
    (add_prompts, {"truncate_dim": 8}, "truncate_dim.*Remove the line, and pass `dim`"),
    (add_lengths, {"query_length": 8}, "query_length.*Remove the line"),
    (add_lengths, {"document_length": 8}, "document_length.*Remove the line"),
)
def test_other_dense_layers_and_prompts_are_refused_before_weights_are_read(
    folder, add, changes, message
):
    add(folder, **changes)
    (folder / "model.safetensors").write_bytes(b"not read yet")
    with pytest.raises(ValueError, match=message):
        bert_keras.TextEmbedder.from_preset(folder)


@pytest.mark.parametrize(
    "kinds",
    [
        (),
        ("Transformer", "Dense", "Pooling"),
        ("Transformer", "Pooling", "Normalize", "Dense"),
        ("Transformer", "Pooling", "Dense", "Dense"),
    ],
)
def test_modules_in_another_order_are_refused(folder, kinds):
    list_modules(folder, *((kind, "1_Pooling") for kind in kinds))
    with pytest.raises(ValueError, match="Supported: Transformer, Pooling"):
        bert_keras.TextEmbedder.from_preset(folder)


def test_options_of_a_projection_are_checked():
    for wrong in ({}, {"units": 0}, {"units": 2, "rank": 1}):
        with pytest.raises(ValueError, match="projection"):
            tiny_embedder(projection=wrong)
    with pytest.raises(ValueError, match="tan"):
        tiny_embedder(projection={"units": 2, "activation": "tan"})


def test_an_encoder_in_its_own_folder_is_found(folder):
    expected = bert_keras.TextEmbedder.from_preset(folder).embed(TEXTS)
    inner = folder / "0_Transformer"
    inner.mkdir()
    for path in [path for path in folder.iterdir() if path.is_file()]:
        if path.name != "modules.json":
            path.rename(inner / path.name)
    list_modules(folder, ("Transformer", "0_Transformer"), ("Pooling", "1_Pooling"))
    embedder = bert_keras.TextEmbedder.from_preset(folder)
    np.testing.assert_allclose(embedder.embed(TEXTS), expected, atol=1e-5)
    assert bert_keras.Tokenizer.from_preset(folder).vocabulary == VOCABULARY


# The modules after a `Router`.
@pytest.mark.parametrize("after", [(), (("Normalize", "1_Normalize"),)])
def test_each_of_two_encoders_loads_from_a_folder_that_lists_its_modules(tmp_path, after):
    both, expected, structure = tmp_path / "both", {}, {}
    for number, kind in enumerate(("document", "query")):
        keras.utils.set_random_seed(number)
        tiny_embedder(normalize=bool(after)).export_to_huggingface(tmp_path / kind)
        expected[kind] = bert_keras.TextEmbedder.from_preset(tmp_path / kind).embed(TEXTS)
        structure[kind] = [f"{kind}_0_Transformer", f"{kind}_1_Pooling"]
        inner = shutil.copytree(tmp_path / kind, both / structure[kind][0])
        (inner / "1_Pooling").rename(both / structure[kind][1])
        (inner / "modules.json").unlink()
    assert np.abs(expected["query"] - expected["document"]).max() > 0.1
    types = {x: f"{MODULES}.{x.rpartition('_')[2]}" for ids in structure.values() for x in ids}
    list_modules(both, ("Router", ""), *after)
    write_json(both / "router_config.json", {"types": types, "structure": structure})
    # `pooling` and `normalize` replace modules, but not the choice of an encoder.
    for source in (both, *(both / f"{kind}_0_Transformer" for kind in expected)):
        for options in ({}, {"pooling": "mean", "normalize": True}):
            with pytest.raises(
                ValueError, match=r"lists that one's modules\. router_config"
            ) as wrong:
                bert_keras.TextEmbedder.from_preset(source, **options)
            assert "damaged" not in str(wrong.value)
    # A task with a new head may begin with either encoder, and is told which one it has.
    with pytest.warns(UserWarning, match="document_0_Transformer', .*The first is read"):
        assert bert_keras.TextClassifier.from_preset(both, num_classes=2).pooling == "mean"
    for kind, paths in structure.items():
        list_modules(both, *((path.rpartition("_")[2], path) for path in paths), *after)
        embedder = bert_keras.TextEmbedder.from_preset(both)
        np.testing.assert_allclose(embedder.embed(TEXTS), expected[kind], atol=1e-6)


def test_one_encoder_for_both_routes_needs_no_choice(exported, folder):
    ids = ["query_0_Transformer", "1_Pooling"]
    inner = shutil.copytree(exported, folder / ids[0])
    (inner / "modules.json").unlink()
    (folder / "config.json").unlink()
    list_modules(folder, ("Router", ""))
    types = {id: f"{MODULES}.{id.rpartition('_')[2]}" for id in ids}
    routes = {"types": types, "structure": {"query": ids, "document": ids}}
    write_json(folder / "router_config.json", routes)
    found, expected = map(bert_keras.TextEmbedder.from_preset, (folder, exported))
    np.testing.assert_allclose(found.embed(TEXTS), expected.embed(TEXTS), atol=1e-6)
    write_json(folder / "router_config.json", routes | {"structure": {}})
    with pytest.raises(ValueError, match=r"router_config.json must have routes in its 'structure'"):
        bert_keras.TextEmbedder.from_preset(folder)


@cases(
    ("TextClassifier", "model_head.pkl", "FewShotClassifier"),
    ("SparseTextEmbedder", "sparse_linear.pt", "copy the folder without this file"),
    ("MultiVectorEmbedder", "colbert_linear.safetensors", "copy the folder without this file"),
)
def test_a_head_that_is_not_read_is_refused_by_its_name(folder, task, name, advice):
    (folder / name).write_bytes(b"")
    options = {"MultiVectorEmbedder": {"dim": 4, "query_length": 8, "query_expansion": None}}
    options |= {"TextClassifier": {"num_classes": 2}, "SparseTextEmbedder": {}}
    if task == "SparseTextEmbedder":
        write_json(folder / "config_sentence_transformers.json", {})
    for modules in (True, False):  # A folder may lack modules.json.
        with pytest.raises(ValueError, match=f"{name}.*{advice}") as refusal:
            getattr(bert_keras, task).from_preset(folder, **options[task])
        assert "damaged" not in str(refusal.value)
        if modules:
            bert_keras.TextEmbedder.from_preset(folder)
            (folder / "modules.json").unlink()


def test_modules_that_treat_queries_in_another_way_are_never_left_out(folder):
    modules = ("Transformer", ""), ("Pooling", "1_Pooling"), ("Asym", "2_Asym")
    list_modules(folder, *modules)
    with pytest.raises(ValueError, match="modules of their own for queries"):
        bert_keras.TextEmbedder.from_preset(folder, pooling="mean", normalize=False)


@pytest.mark.parametrize("name", SENTENCE_FILES)
def test_each_name_of_the_settings_file_is_read(folder, name):
    cased = bert_keras.WordPieceTokenizer([*VOCABULARY[:-1], "A"], lowercase=False)
    cased.save(folder)
    assert cased("A é") != cased("a é")
    (folder / "sentence_bert_config.json").unlink()
    write_json(folder / name, {"max_seq_length": 7, "do_lower_case": True})
    preprocessor = bert_keras.TextEmbedder.from_preset(folder).preprocessor
    assert preprocessor.max_length == 7
    assert preprocessor.tokenizer("A é") == cased("a é")
    assert bert_keras.Tokenizer.load(folder, lowercase=False)("A é") == cased("A é")
    assert bert_keras.TextClassifier.from_preset(folder).preprocessor.max_length == 16
    write_json(folder / name, {"max_seq_length": 7, "do_lower_case": "yes"})
    with pytest.raises(ValueError, match="do_lower_case"):
        bert_keras.TextEmbedder.from_preset(folder)


def test_other_tokenizers_lowercase_first_too():
    tokenizer = byte_pair_tokenizer(TEXTS)
    assert tokenizer("Ab") != tokenizer("ab")
    assert tokenizer.lowercased().lowercased()("Ab") == tokenizer("ab")


def test_lowercasing_keeps_accents_as_they_were():
    for strips in (None, False, True):
        tokenizer = bert_keras.WordPieceTokenizer(
            [*VOCABULARY, "é"], lowercase=False, strip_accents=strips
        )
        assert tokenizer.lowercased()("É") == tokenizer("e" if strips else "é")


def test_prompts_go_before_texts(folder):
    bare = bert_keras.TextEmbedder.from_preset(folder)
    add_prompts(folder)
    before = {
        None: "a b:",
        "query": "a b:",
        "document": "",
        "search.code": "g",
        "h: ": "h:",
        "": "",
    }
    embedder = bert_keras.TextEmbedder.from_preset(folder)
    for prompt, text in before.items():
        expected = bare.embed([f"{text} c d", f"{text} h"])
        found = embedder.embed([" c d", " h "], prompt=prompt)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(embedder.embed("h"), bare.embed("a b: h"), atol=1e-6)
    hit = embedder.semantic_search("h", ["c"])[0]
    expected = bare.semantic_search("a b: h", ["c"])[0]
    assert hit["score"] == pytest.approx(expected["score"], abs=1e-6)


def test_an_embedder_without_prompts_takes_the_usual_names():
    embedder = tiny_embedder()
    for prompt in ("query", "document"):
        np.testing.assert_array_equal(embedder.embed(TEXTS, prompt), embedder.embed(TEXTS))


@pytest.mark.parametrize("name", ["TextEmbedder", "SparseTextEmbedder", "MultiVectorEmbedder"])
def test_white_space_around_a_text_counts_as_in_version_6(name):
    tokenizer = byte_pair_tokenizer(TEXTS)
    assert tokenizer("\n a b ") != tokenizer("a b")
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=32)
    sizes = {"vocabulary_size": tokenizer.vocabulary_size, "max_sequence_length": 32}
    backbone = tiny_backbone(**sizes, initializer_range=0.3)
    embedder = getattr(bert_keras, name)(backbone, preprocessor)
    kinds = [{"kind": "query"}, {}] if name == "MultiVectorEmbedder" else [{}]
    for kind in kinds:
        padded, stripped = (embedder.embed(text, **kind) for text in ("\n a b ", "a b"))
        assert padded.shape != stripped.shape or abs(padded - stripped).max() > 1e-3
    rows = (rows_of(embedder, ([text], ["a"]), training=False) for text in ("\n a b ", "a b"))
    padded, stripped = (row.inputs(np.array([0]), 32)["token_ids"] for row in rows)
    assert not np.array_equal(padded, stripped)


def test_a_pooling_without_the_prompt_is_refused(folder):
    write_json(folder / "1_Pooling/config.json", {"pooling_mode": "mean", "include_prompt": False})
    with pytest.raises(ValueError, match=r"include_prompt.*pool the prompt's tokens too"):
        bert_keras.TextEmbedder.from_preset(folder)


def test_an_unknown_prompt_is_refused():
    embedder, bare = tiny_embedder(prompts=PROMPTS), tiny_embedder()
    for prompt in ("passage", "search_query", 1):
        with pytest.raises(ValueError, match=r"one of \['query', 'document', 'search.code'\]"):
            embedder.embed("a", prompt=prompt)
        with pytest.raises(ValueError, match="`prompt` must be a name"):
            bare.embed("a", prompt=prompt)


def without_pooler(folder):
    """Removes the pooler from a folder's weights."""
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    kept = {name: x for name, x in tensors.items() if not name.startswith("pooler.")}
    assert len(kept) == len(tensors) - 2
    safetensors.numpy.save_file(kept, folder / "model.safetensors")


@pytest.mark.filterwarnings("ignore:.*start at random")
def test_a_new_head_takes_the_pooling_that_the_checkpoint_was_trained_with(folder, tmp_path):
    make = bert_keras.TextClassifier.from_preset
    max_pooling = {"pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": True}
    write_json(folder / "1_Pooling/config.json", max_pooling)
    assert make(folder).pooling == bert_keras.MultipleChoice.from_preset(folder).pooling == "max"
    assert make(folder, pooling="pooler").pooling == "pooler"
    # This package has no such pooling, which only an embedder needs.
    write_json(folder / "1_Pooling/config.json", {"pooling_mode": "lasttoken"})
    assert make(folder).pooling == "pooler"
    # A pooler that is not in the file would start at random.
    without_pooler(folder)
    assert make(folder).pooling == "mean"
    (folder / "modules.json").unlink()
    assert make(folder).pooling == "mean"
    make(folder, pooling="max").save_to_preset(tmp_path / "max")
    assert bert_keras.TextEmbedder.from_preset(tmp_path / "max").pooling == "mean"
    make(folder).save_to_preset(tmp_path / "own")
    assert bert_keras.MultipleChoice.from_preset(tmp_path / "own").pooling == "mean"
    # A family whose head reads the first token keeps it.
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8}
    roberta = bert_keras.RobertaBackbone(30, **sizes)
    bert_keras.MaskedLM(roberta).export_to_huggingface(tmp_path / "roberta")
    assert make(tmp_path / "roberta", preprocessor=None).head_options["hidden_activation"] == "tanh"
