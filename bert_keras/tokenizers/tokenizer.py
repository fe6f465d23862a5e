"""Text to token ids and back, as defined by a tokenizer.json."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
import tokenizers

from bert_keras.checks import check_choice, check_int, check_type
from bert_keras.engine.atomic_files import reading, retry_if_changed, write_text
from bert_keras.migration_hints import NotHere, missing_attribute
from bert_keras.signatures import parameters_of
from bert_keras.tokenizers import tokenizer_files as files
from bert_keras.tokenizers.components import template, with_template
from bert_keras.tokenizers.text_encoder import HIDDEN, ROLES, Layout, TextEncoder, read_layout
from bert_keras.tokenizers.untrusted import check_resource_limits
from bert_keras.tokenizers.vocabulary import require_tokens
from bert_keras.types import Path


@keras.saving.register_keras_serializable(package="bert_keras")
class Tokenizer(TextEncoder):
    """Turns text into the tokens of a model's vocabulary, and ids back into text.

    One file, tokenizer.json, defines how text is cleaned, split into words and pieces, and
    surrounded by special tokens. `WordPieceTokenizer`, `BytePairTokenizer` and `UnigramTokenizer`
    make tokenizers from a vocabulary; `load` reads the files of other libraries. The `tokenizers`
    library does the work. It runs a batch on all cores unless the environment variable
    `TOKENIZERS_PARALLELISM` is `false`. A call never changes a tokenizer, so threads may share it.

    Args:
        backend: a `tokenizers.Tokenizer`, whose truncation and padding are switched off. None
            makes a tokenizer that `load_assets` must fill before use.
        cls_token: str, the first token of every sequence. A role that is None is found by the
            post-processor, by the model's unknown token, or by its usual names (`[PAD]`, `<pad>`,
            `[MASK]`, ...).
        sep_token: str, the token after every text.
        pad_token: str, the token that pads a batch.
        mask_token: str, the token that hides a word. It may be absent as long as its id is not
            used.
        unknown_token: str, the token for text that the vocabulary cannot spell. It may be absent if
            the vocabulary spells everything.
        model_max_length: int, the longest sequence of the model that it was made for, or None.

    Attributes:
        layout: `Layout`, the special tokens around texts.
        settings: dict, the content of tokenizer.json without the vocabulary, but with a checksum of
            merges and scores: tokenizers with equal vocabularies and settings give equal tokens.

    Raises:
        TypeError: `backend` is of another type.
        ValueError: a role is missing or differs from the layout, there are no special tokens around
            texts (WordPiece gets BERT's), ids have gaps, or padding or truncation are not on the
            right with `pad_token`.

    Example:

    >>> from bert_keras.tokenizers import WordPieceTokenizer
    >>> vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "!"]
    >>> tokenizer = WordPieceTokenizer(vocabulary)
    >>> tokenizer.tokenize("Unaffable!")
    ['un', '##aff', '##able', '!']
    >>> tokenizer(["unaffable", "!"])
    [[5, 6, 7], [8]]
    >>> tokenizer.encode("unaffable").offsets
    [(0, 0), (0, 2), (2, 5), (5, 9), (0, 0)]
    """

    from_pretrained = NotHere()

    def __init__(
        self,
        backend: tokenizers.Tokenizer | None = None,
        *,
        cls_token: str | None = None,
        sep_token: str | None = None,
        pad_token: str | None = None,
        mask_token: str | None = None,
        unknown_token: str | None = None,
        model_max_length: int | None = None,
    ) -> None:
        self.cls_token = cls_token
        self.sep_token = sep_token
        self.pad_token = pad_token
        self.mask_token = mask_token
        self.unknown_token = unknown_token
        self.model_max_length = model_max_length
        if model_max_length is not None:
            self.model_max_length = check_int("model_max_length", model_max_length)
        kinds, advice = (tokenizers.Tokenizer, type(None)), "`Tokenizer.load` reads files."
        check_type("backend", backend, kinds, "a `tokenizers.Tokenizer`", advice)
        if backend is not None:
            self._use(backend)

    # The vocabulary

    def _use(self, backend):
        saved = json.loads(backend.to_str())
        check_resource_limits(saved, backend)
        model, layout = saved["model"], read_layout(backend.post_processor)
        for name in ("continues_word", "_word_backend", "_needs_space", "_tokens"):
            self.__dict__.pop(name, None)
        self._backend = backend
        ids = backend.get_vocab()
        if max(ids.values(), default=-1) >= (count := self.vocabulary_size):
            raise ValueError(f"Ids must run from 0 without a gap. Received: no token for {count}.")
        for role, names in files.ROLES.items():
            if getattr(self, role) is None:
                named = _named_token(role, model, layout, self._tokens)
                found = [name for name in (named, *names) if self.find(name) is not None]
                setattr(self, role, found[0] if found else None)
        # The others may be missing as long as their ids are not used.
        needed = ("cls_token", "sep_token", "pad_token", "unknown_token")
        needed = needed if model["type"] == "WordPiece" else needed[:3]
        require_tokens(self._tokens, **{role: getattr(self, role) for role in needed})
        if model["type"] in ("WordPiece", "WordLevel"):
            require_tokens(model["vocab"], unk_token=model["unk_token"])
        if self.find(self.unknown_token) is None:
            self.unknown_token = None
        _check_sides(saved, self.pad_token)
        backend.no_padding()
        backend.no_truncation()
        if layout is None and model["type"] == "WordPiece":
            cls, sep = (self.cls_token_id,), (self.sep_token_id,)
            layout = Layout(cls, sep, sep, 1)
            backend.post_processor = template(layout, self._tokens)
            saved["post_processor"] = json.loads(backend.post_processor.__getstate__())
        _check_layout(layout, self.cls_token_id, self.sep_token_id)
        if model["type"] == "WordPiece" and saved["decoder"] is None:
            backend.decoder = tokenizers.decoders.WordPiece(model["continuing_subword_prefix"])
        parts = ("normalizer", "pre_tokenizer", "post_processor", "added_tokens")
        scores = [score for _, score in model["vocab"]] if model["type"] == "Unigram" else []
        # The library may change the last digit of a score when it reads what it wrote. A score may
        # lie in the middle between two floats of 32 bits, as ALBERT's minus 100; times pi it does
        # not.
        scores = np.multiply(scores, np.pi).astype("float32").tolist()
        numbers = json.dumps([model.get("merges"), scores]).encode()
        rest = {**model, "sha256": hashlib.sha256(numbers).hexdigest()}
        rest.pop("vocab")
        rest.pop("merges", None)
        self.settings = {part: saved[part] for part in parts} | {"model": rest}
        self.layout = layout

    def __getattr__(self, name):
        if name not in ("settings", "layout", "_backend"):
            raise AttributeError(missing_attribute(type(self), name))
        raise ValueError(
            "This tokenizer has no vocabulary: it was made from a config, which holds none, as "
            "`keras.models.clone_model`, `from_config` and `model_from_json` do. Give the new task "
            "the old one's, `new.preprocessor = task.preprocessor`, or that of a preset, "
            "`TextPreprocessor.from_preset(preset)`. `copy.deepcopy(task)` copies the weights too. "
            "`load_assets(folder)` reads a tokenizer alone."
        )

    @property
    def has_vocabulary(self) -> bool:
        """Whether the tokenizer has a vocabulary. One made from a config has none yet."""
        return "_backend" in vars(self)

    def plain(self, all_special: bool = False) -> Tokenizer:
        """Returns a tokenizer to which `[SEP]` and all other special tokens in text are characters.

        Ids, roles and layout are the same.

        Args:
            all_special: bool, whether added tokens without a role are characters too if they are
                special, as `split_special_tokens` of transformers says.
        """
        saved = json.loads(self._backend.to_str())
        tokens = [getattr(self, role) for role in ROLES]
        if all_special:
            added = saved["added_tokens"]
            tokens = [token["content"] for token in added if token["special"]] + tokens
        special = [token for token in saved["added_tokens"] if token["content"] in tokens]
        if not special:
            return self
        vocabulary = saved["model"]["vocab"]
        for token in special:
            content, id = token["content"], token["id"]
            # Unigram would find the piece in text, so it gets a name that no text contains.
            if isinstance(vocabulary, list) and id < len(vocabulary):
                vocabulary[id][0] = HIDDEN + content
            elif content not in vocabulary:
                token["content"] = HIDDEN + content
        kept = [token for token in saved["added_tokens"] if token["content"] not in tokens]
        return self._copy_with(saved | {"added_tokens": kept})

    def _copy_with(self, saved):
        """Returns a copy whose tokenizer.json is a dict."""
        changed = copy.copy(self)
        changed._use(tokenizers.Tokenizer.from_str(json.dumps(saved)))
        return changed

    def lowercased(self) -> Tokenizer:
        """Returns a tokenizer that lowercases texts first and treats accents like this one."""
        saved = json.loads(self._backend.to_str())
        normalizer = saved["normalizer"] or {"type": "Sequence", "normalizers": []}
        if normalizer["type"] == "BertNormalizer":
            strips = normalizer["strip_accents"]
            strips = normalizer["lowercase"] if strips is None else strips
            normalizer = normalizer | {"lowercase": True, "strip_accents": strips}
        else:
            steps = normalizer.get("normalizers", [normalizer])
            normalizer = {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, *steps]}
        return self._copy_with(saved | {"normalizer": normalizer})

    # Files

    # `bert_keras.presets.resolve`, which this module must not import, replaces this.
    resolve = staticmethod(os.fspath)

    @classmethod
    @retry_if_changed
    def from_preset(cls, preset: Path, **overrides: Any) -> Tokenizer:
        """Returns the tokenizer of a preset.

        Args:
            preset: str or path: a registered name, a folder, or an address such as
                `"hf://owner/name"`, see `Task.from_preset`.
            **overrides: see `load`.
        """
        return cls.load(cls.resolve(preset), **overrides)

    @classmethod
    def load(cls, source: Path, **overrides: Any) -> Tokenizer:
        """Reads a tokenizer from a folder or file of Google's, Hugging Face's, KerasHub's or ours.

        A tokenizer.json defines the tokenizer. Without it, vocab.txt makes a WordPiece tokenizer,
        vocab.json with merges.txt a byte-pair one, and a SentencePiece file a Unigram one. Roles
        and settings come, in this order, from `overrides`, special_tokens_map.json (unless
        tokenizer_config.json has an `added_tokens_decoder`), tokenizer_config.json and
        tokenizer.json; `do_lower_case` of sentence-transformers lowercases what the tokenizer of a
        folder reads. If none of them says whether WordPiece lowercases, the vocabulary does: one
        without upper-case letters was made from lowercased text.

        Args:
            source: path of a folder or of one of these files.
            **overrides: roles and `model_max_length`; for WordPiece also `lowercase`,
                `strip_accents`, `split_chinese` and `max_characters_per_word`, for byte pairs
                `add_prefix_space`. Without a tokenizer.json, all arguments of the class that reads
                the vocabulary.

        Returns:
            A `Tokenizer`.

        Raises:
            FileNotFoundError: there is no vocabulary, or no merges.txt beside a vocab.json.
            ValueError: a file is damaged, files of one folder disagree, a role is missing or
                differs from the layout, or this tokenizer does not have an override.
        """
        with reading(source):
            class_name, settings = files.read_tokenizer(source, overrides)
            kind = keras.saving.get_registered_object(f"bert_keras>{class_name}")
            known = parameters_of(kind)[0]
            if kind is not Tokenizer:
                files.refuse(overrides.keys() - known.keys(), f"a {kind.__name__}")
            tokenizer = kind(**{name: value for name, value in settings.items() if name in known})
            if kind is not Tokenizer and "added_ids" in settings:
                tokenizer._add_tokens(settings)
            require_tokens(tokenizer._tokens, **files.roles_of(overrides))
            if "lowercase" not in overrides:
                # sentence-transformers lowercases texts before the tokenizer reads them.
                flag = files.read_sentence_settings(source).get("do_lower_case")
                if check_choice(f"do_lower_case` in `{source}", flag, (None, True, False)):
                    tokenizer = tokenizer.lowercased()
            if settings.get("one_segment") and tokenizer.layout.second_segment:
                backend, layout = tokenizer._backend, tokenizer.layout._replace(second_segment=0)
                new = template(layout, tokenizer._tokens)
                backend.post_processor = with_template(backend.post_processor, new)
                tokenizer._use(backend)
            splits = bool(settings.get("splits_special_tokens"))
            in_text = overrides.get("special_tokens_in_text", not splits)
            return tokenizer if in_text else tokenizer.plain(all_special=splits)

    def _add_tokens(self, settings):
        """Adds the tokens of the files next to a vocabulary, and checks their roles."""
        if files.add_tokens(self._backend, settings, replaces=True):
            self._use(self._backend)
        others = {}
        for role, token in files.roles_of(settings).items():
            if getattr(self, role) not in (None, token):
                others[role] = token
        if others:
            raise ValueError(
                "The files beside a vocabulary must name its own special tokens. Received: "
                f"{others}. Convert them to a tokenizer.json."
            )

    def save(self, folder: Path, input_names: Iterable[str] | None = None) -> None:
        """Writes tokenizer.json, tokenizer_config.json and, for WordPiece, vocab.txt.

        Both `load` and Hugging Face's `AutoTokenizer.from_pretrained` read the folder.

        Args:
            folder: str or path, made when missing.
            input_names: names of the model's inputs, so that Hugging Face's tokenizer makes no
                others; None for all.
        """
        os.makedirs(folder, exist_ok=True)
        self.save_assets(folder)
        files.write_saved(folder, self, input_names)

    def save_assets(self, folder: Path) -> None:
        """Writes tokenizer.json, which has everything that the config lacks, into a folder."""
        write_text(os.path.join(folder, files.TOKENIZER_FILE), self.to_json())

    def to_json(self) -> str:
        """Returns the text of the tokenizer.json."""
        return self._backend.to_str(pretty=True)

    def load_assets(self, folder: Path) -> None:
        """Fills the tokenizer from the tokenizer.json of a folder."""
        path = os.path.join(folder, files.TOKENIZER_FILE)
        with reading(path):
            self._use(files.open_backend(path)[0])

    def get_config(self) -> dict[str, Any]:
        """Returns roles and `model_max_length`; everything else is in the asset."""
        return {name: getattr(self, name) for name in files.ARGUMENTS}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Tokenizer:
        """Makes a `Tokenizer` from `get_config`'s dict. `load_assets` must fill it."""
        return Tokenizer(None, **config)


def _named_token(role, model, layout, tokens):
    """Returns the token of a role in a tokenizer.json, or None."""
    if role == "unknown_token":
        id = model.get("unk_id")
        return model.get("unk_token") if id is None else tokens[id]
    ids = {"cls_token": layout and layout.before, "sep_token": layout and layout.after}.get(role)
    return tokens[ids[-1]] if ids else None


def _check_layout(layout, cls_id, sep_id):
    """Raises `ValueError` unless the special tokens around texts are those of the roles."""
    before, after = (layout.before or [cls_id], layout.after or [sep_id]) if layout else ((), ())
    if cls_id not in before or sep_id not in after:
        raise ValueError(
            "The `post_processor` of a tokenizer.json must put `cls_token` and `sep_token` around "
            f"texts. Received: {layout}, and the ids {cls_id} and {sep_id}. Pass the names of its "
            "own tokens, or set a post-processor, such as `processors.RobertaProcessing`."
        )


def _check_sides(saved, pad_token):
    padding, truncation = saved["padding"] or {}, saved["truncation"] or {}
    sides = {"Right", padding.get("direction", "Right"), truncation.get("direction", "Right")}
    if len(sides) > 1 or padding.get("pad_token", pad_token) != pad_token:
        raise ValueError(
            f"Texts are truncated and padded on the right, with {pad_token!r}. Received: a "
            f"tokenizer.json with {padding=} and {truncation=}. Remove both from the file."
        )
