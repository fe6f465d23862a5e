"""The folders of sentence-transformers, which say how a checkpoint makes a sentence's vector.

These files stand beside a checkpoint in Hugging Face's layout:

| file | what is read |
|---|---|
| `modules.json` | `Transformer` and `Pooling`, and then `Dense`, `Normalize`, or both; for a \
`SparseTextEmbedder` `MLMTransformer` (`Transformer` from version 6) and `SpladePooling` |
| `1_Pooling/config.json` | the pooling: one flag per mode before version 5, then `pooling_mode` |
| `router_config.json` | for a `SparseTextEmbedder` whose queries need no model: `document_*` are \
modules as above; `query_0_SparseStaticEmbedding/` or `idf.json` has a weight for each token |
| `1_Dense/`, `2_MultiVectorMask/` | for a `MultiVectorEmbedder`, see `late_interaction` |
| `1_SpladePooling/config.json` | `pooling_strategy`, which must be `max`, `activation_function` |
| `2_Dense/` | a dense layer: `config.json` with its activation, and its weights |
| `config_sentence_transformers.json` | `prompts`, `default_prompt_name`, `similarity_fn_name` |
| `sentence_bert_config.json` | `max_seq_length`, `do_lower_case`; old names have other families |

Old folders have the checkpoint in `0_Transformer/`.

Reference: https://www.sbert.net/docs/sentence_transformer/usage/custom_models.html
"""

import contextlib

import numpy as np

from bert_keras.answers.similarity import SIMILARITIES
from bert_keras.checks import check_choice, check_int, check_not_empty, check_settings, check_shape
from bert_keras.engine.atomic_files import read_json, requiring, write_json
from bert_keras.presets.assign import assign, head_weights
from bert_keras.presets.families import has_head_of
from bert_keras.presets.formats import huggingface as hub
from bert_keras.presets.formats import late_interaction as late
from bert_keras.presets.name_map import expand
from bert_keras.presets.resolve import root_of
from bert_keras.tokenizers.tokenizer_files import read_sentence_settings

# Those that are the same here.
_POOLINGS = ("cls", "mean", "max")
_FLAG = "pooling_mode_"
_OLD_FLAGS = {
    f"{_FLAG}cls_token": "cls",
    f"{_FLAG}max_tokens": "max",
    f"{_FLAG}mean_tokens": "mean",
}
_PACKAGE = "sentence_transformers.models"
# Says which modules of a `Router` are for queries and which for documents.
ROUTER_FILE = "router_config.json"
# Modules that send queries and documents to others. An `Asym`, of older versions, is not read.
_ROUTERS = ("Router", "Asym")
_SPARSE_PACKAGE = "sentence_transformers.sparse_encoder.models"
# Their activation of SPLADE's logits -> our `log_twice`.
_LOG_TWICE = {"relu": False, "log1p_relu": True}
_ROWS = (("head/dense", "linear", "dense"),)
_SPARSE, _LATE = "SparseTextEmbedder", "MultiVectorEmbedder"
_EMBEDDERS = ("TextEmbedder", _SPARSE)
# The modules that a `MultiVectorEmbedder` may have after its linear layer.
_AFTER_DENSE = {"Dense", "MultiVectorMask", "Normalize"}


class SentenceTransformersFolder(hub.HuggingFaceFolder):
    """An opened folder of sentence-transformers."""

    def __init__(self, folder, config, path, name):
        super().__init__(folder, config, path, name)
        self.root, self._dense, self._longest = root_of(folder), None, None

    def task_name(self):
        """Returns the registered name of the task whose head the folder has, or `None`."""
        kind = self._embedder()
        return f"bert_keras>{kind}" if kind else super().task_name()

    def _is_routed(self):
        """Whether queries and documents have modules of their own."""
        with contextlib.suppress(ValueError):
            first, *others = self._routes().values()
            return bool(dict(first).keys() & {*_ROUTERS}) or any(route != first for route in others)
        return False

    def _embedder(self):
        """Returns the class name of the embedder that the modules of documents make, or `None`."""
        kinds = _kinds(self._routes().get("document", ()))
        if kinds[1:] == ["SpladePooling"]:
            return _SPARSE
        if kinds[:2] == ["Transformer", "Dense"] and _AFTER_DENSE.issuperset(kinds[2:]):
            return _LATE
        return "TextEmbedder" if kinds[:2] == ["Transformer", "Pooling"] else None

    def max_length(self, task, tokenizer):
        """Returns the longest sequence that a task reads; the folder sets that of an embedder."""
        length = self._longest if has_head_of(task, _LATE) else None
        if has_head_of(task, *_EMBEDDERS):
            length = self._max_seq_length()
        return super().max_length(task, tokenizer) if length is None else length

    def task_arguments(self, task, chosen=()):
        """Returns the arguments of a task in the folder, see `Checkpoint.task_arguments`.

        An embedder for which the user has chosen `pooling` and `normalize` needs no modules.

        Raises:
            ValueError: a file is damaged, or the folder makes vectors in another way.
        """
        is_late = has_head_of(task, _LATE) and self._embedder() == _LATE
        if (is_late or has_head_of(task, "TextEmbedder")) and self._is_routed():
            raise ValueError(
                f"{self.root} has modules of their own for queries and documents. Load an embedder "
                "for each, from a copy of the folder whose modules.json lists that one's modules. "
                f"{ROUTER_FILE} has their types and paths."
            )
        if is_late:
            settings, modules = self.sentence_settings(), self._routes()["document"]
            found = late.read_modules(settings, self.root, self.folder, modules)
            self._limit_lengths(found)
            self._dense = dict(modules)["Dense"]
            shape = hub.read_weights(self._dense).shapes.get("linear.weight", (0,))
            return {"dim": shape[0], **found}
        if not has_head_of(task, *_EMBEDDERS):
            return super().task_arguments(task, chosen)
        settings = self._prompts()
        if has_head_of(task, _SPARSE):
            self._refuse_cut("max_active_dims", "pass `top_k` to `token_weights`")
            self._similarity(("dot",), "Remove the line to compare by dot products.")
            is_sparse, routes = self._embedder() == _SPARSE, self._routes()
            own = _read_splade(routes["document"][1][1]) if is_sparse else {}
            queries = routes.get("query")
            if queries and "query_weights" not in chosen:
                own["query_weights"] = self._query_weights(queries)
            return super().task_arguments(task, chosen) | settings | own
        settings["similarity"] = self._similarity(SIMILARITIES)
        if {"pooling", "normalize"} <= set(chosen):
            return settings
        self._refuse_cut("truncate_dim", "pass `dim` to `embed`")
        modules = next(iter(self._routes().values()))
        kinds = _kinds(modules)
        known = ["Transformer", "Pooling", *["Dense"] * ("Dense" in kinds), "Normalize"]
        advice = "Supported: Transformer, Pooling, and then Dense, Normalize, or both. Pass both "
        advice += "`pooling` and `normalize` to ignore its modules."
        check_choice(f"modules` in `{self.root}", kinds, (known, known[:-1]), advice)
        folders = dict(modules)
        settings |= {"pooling": _read_pooling(folders["Pooling"]), "normalize": kinds == known}
        if "Dense" in kinds:
            self._dense = folders["Dense"]
            settings["projection"] = _read_projection(self._dense)
        return settings

    def _limit_lengths(self, arguments):
        """Cuts queries or documents without a length of their own as the folder cuts all texts."""
        limit = self._max_seq_length()
        lengths = {key: arguments[key] for key in ("query_length", "document_length")}
        own = [length for length in lengths.values() if length]
        if limit and len(own) < len(lengths):
            self._longest = max([limit, *own])
            if limit < self._longest:
                arguments |= {key: length or limit for key, length in lengths.items()}

    def _max_seq_length(self):
        length = read_sentence_settings(self.folder).get("max_seq_length")
        return None if length is None else check_int(f"max_seq_length` in `{self.folder}", length)

    def _refuse_cut(self, setting, instead):
        """Refuses a setting that cuts every vector, and other lengths of queries or documents."""
        advice = f"Remove the line, and {instead}."
        path, allowed = self.root / late.SENTENCES_FILE, {setting: (None,)}
        check_settings(path, self.sentence_settings(), allowed, advice)
        lengths = (None, self._max_seq_length())
        allowed = {"query_length": lengths, "document_length": lengths}
        advice = "Remove the line: here `max_seq_length` cuts queries and documents alike."
        check_settings(self.folder, read_sentence_settings(self.folder), allowed, advice)

    def _similarity(self, known, advice=""):
        """Returns how the folder compares vectors; by default the first of those known."""
        name = self.sentence_settings().get("similarity_fn_name") or known[0]
        where = f"similarity_fn_name` in `{self.root / late.SENTENCES_FILE}"
        return check_choice(where, name, known, advice)

    def pooling_of_new_head(self, task, has_weights):
        """Returns the pooling that the encoder was trained with, if this package has it.

        That training did not use the checkpoint's pooler, so a new head had better not either.
        """
        # A task that is no embedder can do without the modules' files.
        with contextlib.suppress(ValueError, FileNotFoundError):
            if self._embedder() == "TextEmbedder":
                return _read_pooling(self._routes()["document"][1][1])
        return super().pooling_of_new_head(task, has_weights)

    def load_head_weights(self, task):
        """Assigns the weights of the embedder's dense layer, or of another task's head.

        Raises:
            ValueError: the folder has the task's head in a file that is not read.
        """
        if self._dense is None or not has_head_of(task, "TextEmbedder", _LATE):
            super().load_head_weights(task)
        else:
            names = expand(_ROWS, self.kinds)
            assign(head_weights(task), names, hub.read_weights(self._dense), source=self.source)

    def _routes(self):
        """Returns the modules by kind of text: `"document"`, or the routes of a `Router`.

        Those before and after a router belong to each of its routes.

        Returns:
            dict, kind of text -> list of pairs of a module's kind and its folder.

        Raises:
            ValueError: a file is damaged.
        """
        path = self.root / "modules.json"
        with requiring(path, "list modules, each with 'type' and 'path'"):
            modules = [
                (module["type"].rpartition(".")[2], self.root / module.get("path", ""))
                for module in read_json(path, list)
            ]
        routes = {"document": self._inside(path, modules)}
        places = [i for i, (kind, _) in enumerate(modules) if kind in _ROUTERS]
        root = modules[places[0]][1] if places else self.root
        path = root / ROUTER_FILE
        if not (places and path.is_file()):
            return routes
        before, after = modules[: places[0]], modules[places[0] + 1 :]
        with requiring(path, "have 'types' and 'structure'"):
            config = read_json(path, dict)
            types, structure = config["types"], config["structure"]
            routes = {
                kind: [*before, *((types[id].rpartition(".")[2], root / id) for id in ids), *after]
                for kind, ids in structure.items()
            }
        check_not_empty(routes, f"{path} must have routes in its 'structure'")
        return {kind: self._inside(path, found) for kind, found in routes.items()}

    def _inside(self, path, modules):
        """Returns pairs of a kind and a path, after checking that each path lies in `root`."""
        for _, folder in modules:
            if not folder.resolve().is_relative_to(self.root.resolve()):
                raise ValueError(f"{path} names a file outside its folder: {str(folder)!r}.")
        return modules

    def _query_weights(self, modules):
        """Returns a dict, token of a query -> weight.

        Raises:
            ValueError: something other than such weights embeds queries, or a file is damaged.
        """
        kinds, folder = _kinds(modules), modules[0][1]
        advice = "A query encoder is not read: its vectors would differ from those of documents. "
        advice += "Pass `query_weights` to embed queries by weights of your own."
        router = folder.parent / ROUTER_FILE
        check_choice(f"query` in `{router}", kinds, (["SparseStaticEmbedding"],), advice)
        path = folder / "config.json"
        name = (read_json(path, dict) if path.is_file() else {}).get("path")
        if name is not None:
            [(_, path)] = self._inside(path, [("", self.root / name)])
            return read_json(path, dict)
        tensors = hub.read_weights(folder)
        if "weight" not in tensors:
            raise ValueError(f"{folder} must have one tensor, 'weight'. Received: {list(tensors)}.")
        weights = tensors["weight"]
        vocabulary = self.tokenizer().vocabulary
        check_shape(f"The weights in {folder}", weights, (len(vocabulary),), "f")
        return {token: float(x) for token, x in zip(vocabulary, weights, strict=True) if x}


def _kinds(modules):
    return [kind for kind, _ in modules]


def _read_splade(folder):
    allowed = {"pooling_strategy": ("max",), "activation_function": tuple(_LOG_TWICE)}
    name = late.read_module(folder, allowed).get("activation_function", "relu")
    return {"log_twice": _LOG_TWICE[name]}


def _read_pooling(folder):
    advice = "Embedders pool the prompt's tokens too."
    config = late.read_module(folder, {"include_prompt": (True,)}, advice)
    modes = config.get("pooling_mode")
    if modes is None:
        flags = [key for key, is_on in config.items() if key.startswith(_FLAG) and is_on]
        modes = [_OLD_FLAGS.get(flag, flag) for flag in flags] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    advice = "Pass both `pooling` and `normalize` to use others than those of its training."
    return check_choice(f"pooling` in `{folder}", modes, [[name] for name in _POOLINGS], advice)[0]


def _read_projection(folder):
    """Returns the options of the dense layer in a folder; `units` follows from its weights."""
    allowed = {"module_input_name": ("sentence_embedding",), "use_residual": (False,)}
    config = late.read_module(folder, allowed)
    shapes = hub.read_weights(folder).shapes
    return {
        "units": shapes.get("linear.weight", (0,))[0],
        "activation": hub.read_activation(config.get("activation_function", "torch.Tanh"), folder),
        "use_bias": "linear.bias" in shapes,
    }


def write_settings(folder, task):
    """Writes the files for sentence-transformers into the folder of an embedder's backbone.

    Their format is that of versions before 5, which all versions read.

    Args:
        folder: `Path` of an existing folder.
        task: a `TextEmbedder`.

    Raises:
        ValueError: sentence-transformers does not have the pooling or the activation.
    """
    check_choice("pooling", task.pooling, _POOLINGS, "sentence-transformers has no others.")
    kinds = ["Transformer", "Pooling", *["Dense"] * bool(task.projection)]
    kinds += ["Normalize"] * task.normalize
    paths = ["", *(f"{number}_{kind}" for number, kind in enumerate(kinds[1:], 1))]
    flags = {flag: mode == task.pooling for flag, mode in _OLD_FLAGS.items()}
    pooling = {"word_embedding_dimension": task.backbone.hidden_dim, **flags}
    late.write_module(folder / paths[1], pooling)
    if projection := task.projection:
        advice = "sentence-transformers has these."
        check_choice("projection['activation']", projection["activation"], hub.TORCH_NAMES, advice)
        activation = hub.TORCH_NAMES[projection["activation"]]
        settings = projection["units"], projection["use_bias"]
        late.write_dense(folder / paths[2], task, *settings, activation_function=activation)
    modules = {p: f"{_PACKAGE}.{kind}" for p, kind in zip(paths, kinds, strict=True)}
    _write_modules(folder, task, modules)


def write_sparse_settings(folder, task):
    """Writes the files for sentence-transformers into the folder of a `SparseTextEmbedder`."""
    is_static = task.query_weights is not None
    activation = {ours: theirs for theirs, ours in _LOG_TWICE.items()}[task.log_twice]
    config = {"pooling_strategy": "max", "activation_function": activation}
    config["word_embedding_dimension"] = task.dim
    pooling = folder / ("document_1_SpladePooling" if is_static else "1_SpladePooling")
    late.write_module(pooling, config)
    modules = {"": "MLMTransformer", pooling.name: "SpladePooling"}
    modules = {path: f"{_SPARSE_PACKAGE}.{kind}" for path, kind in modules.items()}
    if is_static:
        _write_router(folder, task, modules)
        modules = {"": f"{_PACKAGE}.Router"}
    _write_modules(folder, task, modules, model_type="SparseEncoder")


def _write_router(folder, task, of_documents):
    """Writes the weights of queries' tokens, and which modules serve queries and documents.

    Args:
        folder: `Path`.
        task: a `SparseTextEmbedder` with `query_weights`.
        of_documents: dict, path of a module -> its type.
    """
    queries = folder / "query_0_SparseStaticEmbedding"
    weights = [task.query_weights.get(token, 0.0) for token in task.tokenizer.vocabulary]
    late.write_module(queries, {"frozen": True}, {"weight": np.array(weights, "float32")})
    task.tokenizer.save(queries, task.backbone.input_names)
    of_queries = {queries.name: f"{_SPARSE_PACKAGE}.SparseStaticEmbedding"}
    router = {
        "types": of_queries | of_documents,
        "structure": {"query": [*of_queries], "document": [*of_documents]},
        "parameters": {"default_route": "document", "allow_empty_key": True},
    }
    write_json(folder / ROUTER_FILE, router)


def _write_modules(folder, task, modules, **settings):
    """Writes the longest text, the prompts, the similarity, and the list of modules.

    Args:
        folder: `Path`.
        task: an `Embedder`.
        modules: dict, path of a module -> its type.
        **settings: other entries of `config_sentence_transformers.json`.
    """
    config = {**_prompts_of(task), **settings, "similarity_fn_name": task.similarity}
    late.write_module_files(folder, {"max_seq_length": late.longest_text(task)}, config, modules)


def _prompts_of(task):
    return {theirs: getattr(task, ours) for theirs, ours in hub.PROMPTS.items()}


def write_cross_encoder_settings(folder, task):
    """Writes the files for sentence-transformers, from 6, into the folder of a `Reranker`.

    Args:
        folder: `Path` of an existing folder.
        task: a `Reranker` with prompts.
    """
    of_transformer = {
        "transformer_task": "sequence-classification",
        "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}},
        "module_output_name": "scores",
    }
    config = {"model_type": "CrossEncoder", "activation_fn": hub.TORCH_NAMES[task.activation]}
    modules = {"": "sentence_transformers.base.modules.transformer.Transformer"}
    late.write_module_files(folder, of_transformer, {**_prompts_of(task), **config}, modules)
