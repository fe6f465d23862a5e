"""BERT for Keras 3: models, pre-training and fine-tuning on TensorFlow, JAX and PyTorch.

Importing the package registers its classes with Keras, so that `keras.models.load_model` finds
them, and changes nothing else in the process; see `keep_freed_memory` for what you may change. If
Keras is not installed, `bert_keras.export.runtime` can still be imported.
"""

import importlib as _importlib
import os as _os
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from bert_keras.migration_hints import renamed_class as _renamed_class
from bert_keras.version import __version__

_program = "".join(_sys.argv[:1])
if _program == "-m":  # Python is still looking for the module, which may be another one.
    _program = _sys.orig_argv[-len(_sys.argv)]
if _os.path.basename(_program) in ("bert-keras", "bert-keras.exe", "bert_keras", "-mbert_keras"):
    from bert_keras.cli.bootstrap import prepare as _prepare

    _prepare()

try:
    import keras as _keras
except ModuleNotFoundError as error:
    if error.name in ("tensorflow", "jax", "torch"):
        raise ModuleNotFoundError(
            f"Keras needs the package of its backend. {error.name} is not installed. Set the "
            "environment variable KERAS_BACKEND to tensorflow, jax or torch, whichever is."
        ) from error
    if error.name != "keras":  # Without Keras, only `bert_keras.export.runtime` can be imported.
        raise
else:
    from bert_keras import distribution as distribution
    from bert_keras import heads as heads
    from bert_keras import layers as layers
    from bert_keras import metrics as metrics
    from bert_keras import training as training
    from bert_keras.engine.keras_file import load_model as load_model
    from bert_keras.engine.malloc import keep_freed_memory as keep_freed_memory
    from bert_keras.models.albert import AlbertBackbone as AlbertBackbone
    from bert_keras.models.bert import BertBackbone as BertBackbone
    from bert_keras.models.deberta_v2 import DebertaV2Backbone as DebertaV2Backbone
    from bert_keras.models.distilbert import DistilBertBackbone as DistilBertBackbone
    from bert_keras.models.electra import ElectraBackbone as ElectraBackbone
    from bert_keras.models.modernbert import ModernBertBackbone as ModernBertBackbone
    from bert_keras.models.mpnet import MPNetBackbone as MPNetBackbone
    from bert_keras.models.nomic_bert import NomicBertBackbone as NomicBertBackbone
    from bert_keras.models.roberta import RobertaBackbone as RobertaBackbone
    from bert_keras.preprocessing.text_preprocessor import TextPreprocessor as TextPreprocessor
    from bert_keras.presets.resolve import presets as presets
    from bert_keras.tasks.distillation import Distillation as Distillation
    from bert_keras.tasks.distillation import distill as distill
    from bert_keras.tasks.few_shot_classifier import FewShotClassifier as FewShotClassifier
    from bert_keras.tasks.hard_negatives import mine_hard_negatives as mine_hard_negatives
    from bert_keras.tasks.long_text_classifier import LongTextClassifier as LongTextClassifier
    from bert_keras.tasks.masked_lm import MaskedLM as MaskedLM
    from bert_keras.tasks.multi_vector_embedder import MultiVectorEmbedder as MultiVectorEmbedder
    from bert_keras.tasks.multiple_choice import MultipleChoice as MultipleChoice
    from bert_keras.tasks.next_sentence_prediction import (
        NextSentencePrediction as NextSentencePrediction,
    )
    from bert_keras.tasks.pretraining import Pretraining as Pretraining
    from bert_keras.tasks.question_answering import QuestionAnswering as QuestionAnswering
    from bert_keras.tasks.replaced_token_detection import (
        ReplacedTokenDetection as ReplacedTokenDetection,
    )
    from bert_keras.tasks.replaced_token_detection import (
        ReplacedTokenDetector as ReplacedTokenDetector,
    )
    from bert_keras.tasks.reranker import Reranker as Reranker
    from bert_keras.tasks.saliency import Saliency as Saliency
    from bert_keras.tasks.saliency import integrated_gradients as integrated_gradients
    from bert_keras.tasks.span_boundary import SpanBoundary as SpanBoundary
    from bert_keras.tasks.sparse_text_embedder import SparseTextEmbedder as SparseTextEmbedder
    from bert_keras.tasks.task import Task as Task
    from bert_keras.tasks.text_classifier import TextClassifier as TextClassifier
    from bert_keras.tasks.text_embedder import TextEmbedder as TextEmbedder
    from bert_keras.tasks.token_classifier import TokenClassifier as TokenClassifier
    from bert_keras.tasks.zero_shot_classifier import ZeroShotClassifier as ZeroShotClassifier
    from bert_keras.tasks.zero_shot_tagger import ZeroShotTagger as ZeroShotTagger
    from bert_keras.tokenizers.byte_pair import BytePairTokenizer as BytePairTokenizer
    from bert_keras.tokenizers.tokenizer import Tokenizer as Tokenizer
    from bert_keras.tokenizers.unigram import UnigramTokenizer as UnigramTokenizer
    from bert_keras.tokenizers.wordpiece import WordPieceTokenizer as WordPieceTokenizer
    from bert_keras.training.optimizer import AdamW as AdamW
    from bert_keras.training.schedules import WarmupDecay as WarmupDecay
    from bert_keras.training.schedules import layer_wise_decay as layer_wise_decay

if _TYPE_CHECKING:
    from bert_keras import corpora as corpora
    from bert_keras import datasets as datasets
    from bert_keras import export as export
    from bert_keras import plots as plots
    from bert_keras import search as search
    from bert_keras.corpora.vocabulary_training import train_wordpiece as train_wordpiece


# The rooms built on the library, each imported when a program first uses it.
_ROOMS = ("corpora", "datasets", "export", "plots", "search")


def __getattr__(name):
    if name in _ROOMS:
        return _importlib.import_module(f"{__name__}.{name}")
    if name == "train_wordpiece":
        return __getattr__("corpora").train_wordpiece
    if "_keras" not in globals() and name[:1].isupper():
        raise ModuleNotFoundError(
            f"bert_keras.{name} needs Keras, which is not installed: pip install keras. Exported "
            "folders answer without it, with `bert_keras.export.runtime`."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{_hint(name)}")


def _hint(name):
    """Returns a sentence on where the package has that name, or its own name for it, or `""`."""
    if "_keras" not in globals() or name.startswith("_"):
        return ""
    for package in (training, layers, heads, metrics, __getattr__("datasets")):
        if hasattr(package, name):
            return f" Here it is `{package.__name__}.{name}`."
    return _renamed_class(name)


def __dir__():
    names = {*globals(), *_ROOMS, "train_wordpiece"}
    return sorted(name for name in names if not name.startswith("_") or name == "__version__")
