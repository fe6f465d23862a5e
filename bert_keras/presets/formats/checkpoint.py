"""The base classes of opened presets, and how a family's record is read.

An opened preset has

- `folder`: the path of its files;
- `registered_class(name, base)`: a registered class, which derives from `base`;
- `backbone_name`: the registered name of the backbone's class;
- `backbone(cls, load_weights, overrides)`: a new backbone of its class, with initial weights;
- `load_backbone_weights(backbone, task=None)`;
- `limiting_parameters(load_weights)`: a context that refuses a model with more values than the
  tensors;
- `task_class(cls)`: `cls`, or the user's subclass of it whose task the preset holds;
- `task_name()`: the registered name of the task whose head the preset has, or `None`;
- `task_arguments(task, chosen=())`: the constructor arguments that the preset has for a task's
  class; arguments that the user has `chosen` need not be read;
- `max_length(task, tokenizer)`: the longest sequence that the preset sets for a task, or `None`;
- `pooling_of_new_head(task, has_weights)`: the pooling that suits a head which the preset lacks, or
  `None` for that of the family;
- `load_head_weights(task)`;
- `tokenizer()`: the tokenizer of the folder;
- `preprocessor_config`: the saved preprocessor's class and arguments, or `None`.
"""

import functools
import inspect
import re
from typing import NamedTuple

import keras

from bert_keras.checks import check_number, check_settings
from bert_keras.engine.atomic_files import reading, replacing_files, requiring, write_json
from bert_keras.engine.quantized import check_not_quantized
from bert_keras.engine.size_limit import parameter_budget
from bert_keras.presets.assign import arrays_of, assign, by_path, head_weights
from bert_keras.presets.families import RECORDS, head_class_name, record_of
from bert_keras.presets.families.record import Head
from bert_keras.presets.model_card import write_card
from bert_keras.presets.name_map import expand, transformed_back, transformed_shape
from bert_keras.presets.safetensors_io import WEIGHTS_FILE, weights_files, write_safetensors
from bert_keras.presets.tensors import Tensors
from bert_keras.signatures import check_arguments
from bert_keras.tokenizers.tokenizer import Tokenizer

# What the paths of a pooler begin with. A checkpoint may lack it, with a warning.
POOLER = "pooler/"
# The values that a config may have for a head's pooling.
POOLINGS = ("cls", "mean")


class FoundHead(NamedTuple):
    """What a checkpoint has of a task's head.

    Attributes:
        kind: str, class name of the task whose head it is.
        head: the record's `Head`, an empty one if the family has none for the task.
        names: dict, our path -> `(tensor name, transform)`, see `name_map.expand`.
        tensors: `Tensors`, those of `names` that the checkpoint has.
        is_whole: bool, whether the checkpoint has the head.
    """

    kind: str
    head: Head
    names: dict
    tensors: Tensors
    is_whole: bool


class Preset:
    """An opened preset folder of any format.

    Args:
        folder: `Path`.
        config: dict, its parsed config.
        path: `Path` of the config, for messages.
        name: str, the user's name of the preset.
    """

    # The registered name of the backbone's class; each instance has its own.
    backbone_name = None
    # Only our own format saves a preprocessor.
    preprocessor_config = None

    def __init__(self, folder, config, path, name):
        self.folder, self.config, self.path = folder, config, path
        self.source = f"The preset {name!r}"

    def backbone(self, cls, load_weights, overrides):
        """Returns a new backbone with initial weights.

        Args:
            cls: the backbone's class.
            load_weights: bool, whether the tensors will fill it. Then it may not be larger.
            overrides: dict, arguments of the backbone in place of the config's.

        Raises:
            TypeError: the backbone has no argument of an override's name.
            ValueError: the config lacks a size, or has a setting that the family does not support.
        """
        check_arguments(overrides, cls, sorted(cls.argument_names()))
        with reading(None if overrides else self.path):
            arguments = {**self._backbone_arguments(cls), **overrides}
            with self.limiting_parameters(load_weights):
                return cls.from_config(arguments)

    def num_positions(self, cls):
        """Returns the longest sequence that the backbone takes, or `None` for any length.

        Args:
            cls: the backbone's class.
        """
        default = cls.parameters_of_constructor()["max_sequence_length"].default
        return self._backbone_arguments(cls).get("max_sequence_length", default)

    def registered_class(self, name, base):
        """Returns the class of a registered name, which must derive from `base`.

        Raises:
            ValueError: the name is not registered, or the class does not derive from `base`.
        """
        found = keras.saving.get_registered_object(name)
        if isinstance(found, type) and issubclass(found, base):
            return found
        problem = f"a {base.__name__}. Load it with its own class."
        if found is None:
            problem = "registered. Import its module, or install the version that saved it."
        raise ValueError(f"{self.folder} holds {name!r}, which is not {problem}")

    def limiting_parameters(self, load_weights):
        """Returns a context in which a model with more values than the tensors is refused."""
        return parameter_budget(
            self.source, (lambda: self.tensors.num_values) if load_weights else None
        )

    def tokenizer(self):
        """Returns the tokenizer of the folder."""
        return Tokenizer.load(self.folder)

    def task_class(self, cls):
        """Returns `cls`: only our own format saves tasks of a user's classes."""
        return cls

    def max_length(self, task, tokenizer):
        """Returns the longest sequence that a task reads, by default the tokenizer's limit."""
        return tokenizer.model_max_length


class Checkpoint(Preset):
    """A folder of another library, which is read with the family's record.

    A subclass defines `tensors` and `kinds` (see `name_map`), and whatever its format does in
    another way: `saved_tasks`, `_head_of`, `_tensors_of_head`, `_arguments_of_head`.
    """

    def __init__(self, folder, config, path, name, record):
        super().__init__(folder, config, path, name)
        self.record, self.backbone_name = record, record.backbone
        self._advice = f"{record.backbone} supports no others."

    def _backbone_arguments(self, cls):
        record, config = self.record, {**self.record.defaults, **self.config}
        arguments, parameters = {**record.fixed}, cls.parameters_of_constructor()
        missing = []
        for theirs, ours in record.config.items():
            if theirs in config:
                arguments[ours] = config[theirs]
            elif parameters[ours].default is inspect.Parameter.empty:
                missing.append(theirs)
        with requiring(self.path, "define the sizes of the model"):
            if missing:
                raise KeyError(*missing)
        check_settings(self.path, config, record.allowed, self._advice)
        if (key := record.activation_key) is not None:
            activations = record.activations
            check_settings(self.path, config, {key: tuple(activations)}, self._advice)
            arguments["activation"] = activations[config.get(key, next(iter(activations)))]
        for field in record.fields:
            with requiring(self.path, f"define {field.argument}"):
                arguments[field.argument] = field.read(config)
        return arguments

    def load_backbone_weights(self, backbone, task=None):
        """Assigns every backbone weight its tensor.

        A missing pooler gives only a warning. Tensors of parts that neither the backbone nor a head
        of its family has are left out with a warning.

        Args:
            backbone: the result of `backbone`.
            task: its task, or `None`. There is no warning if the task does not read the pooler.

        Raises:
            FileNotFoundError: a file of the checkpoint is missing.
            ValueError: a file is damaged, or a name or a shape does not fit. The message lists both
                sides, and no weight was changed.
        """
        # The first component of a tensor's name is that of its module.
        modules = {re.split("[./]", theirs)[0] for _, theirs, *_ in self.record.rows}
        own, left_out, ignorable = [], [], self._ignorable_head_tensors(task)
        for name in self.tensors:
            if re.split("[./]", name)[0] in modules:
                own.append(name)
            elif name not in ignorable:
                left_out.append(name)
        tensors = self.tensors.only(own)
        if self.record.tables is not None:
            tensors = self.record.tables.read(tensors, backbone, self.config)
        names, variables = self._expanded(self.record.rows, backbone), weights_of(backbone)
        if backbone.pooler is None:  # Because the user asked for none, or the family has none.
            pooler = {name for path, (name, _) in names.items() if path.startswith(POOLER)}
            tensors = tensors.without(pooler)
        elif task is not None and not task.reads_pooled_output:
            for path in [path for path in variables if path.startswith(POOLER)]:
                if path not in names or names[path][0] not in tensors:
                    del variables[path]
        assign(variables, names, tensors, (POOLER,), sorted(left_out), self.source)

    @functools.cached_property
    def saved_tasks(self):
        """Class names of the tasks that the checkpoint was saved from."""
        return [name for name in self.record.heads if self._head_of(name).is_whole]

    def task_name(self):
        """Returns the registered name of the task whose head the checkpoint has, or `None`."""
        return f"bert_keras>{self.saved_tasks[0]}" if self.saved_tasks else None

    def task_arguments(self, task, chosen=()):
        """Returns a task's arguments in the checkpoint, such as labels, problem type, dropout."""
        found, names = self._head_of(task), {*task.argument_names(), *task.decided_arguments}
        if not found.is_whole:
            return {}
        arguments = self._arguments_of_head(found, names)
        arguments = {k: x for k, x in arguments.items() if k in names and x is not None}
        if "pooling" in found.head.options:
            options = dict(found.head.options)
            arguments.setdefault("pooling", options.pop("pooling"))
            options.pop("dropout", None)
            arguments["head_options"] = options
        return arguments

    def pooling_of_new_head(self, task, has_weights):
        """Returns `"mean"` if the head would read a pooler that the checkpoint lacks.

        Such a pooler would start at random, and a short training would not bring it far.

        Args:
            task: class of the task, whose head the checkpoint does not have.
            has_weights: bool, whether weights are loaded.
        """
        pooling = self._head_of(task).head.options.get("pooling", "pooler")
        rows = [row for row in self.record.rows if row[0].startswith(POOLER)]
        if not (has_weights and rows) or pooling != "pooler":
            return None
        names = [name for name, _ in self._expanded(rows).values()]
        return None if any(name in self.tensors for name in names) else "mean"

    def load_head_weights(self, task):
        """Assigns the head's weights if the checkpoint has them, or warns.

        Raises:
            FileNotFoundError: a file of the checkpoint is missing.
            ValueError: a file is damaged, or a part of the head is missing or has another shape.
        """
        _, head, names, tensors, is_whole = self._head_of(task)
        weights = head_weights(task)
        if not is_whole:  # A new head may lack layers of the pre-training head.
            tensors = tensors.only(name for path, (name, _) in names.items() if path in weights)
        found = [path for path, (name, _) in names.items() if name in tensors]
        absent = [part for part in head.parts if not any(path.startswith(part) for path in found)]
        assign(weights, names, tensors, optional=absent, source=self.source)

    def _head_of(self, task):
        """Returns the `FoundHead` for a task, its class, or its class's name."""
        kind = head_class_name(task, self.record.heads)
        head = self.record.heads.get(kind, Head())
        names = self._expanded(head.rows)
        tensors = self._tensors_of_head(kind, names)
        is_whole = bool(names) and all(name in tensors for name, _ in names.values())
        return FoundHead(kind, head, names, tensors, is_whole)

    def _expanded(self, rows, backbone=None):
        """Returns rows expanded, see `name_map.expand`, with the names that `tensors` has."""
        names, prefix = expand(rows, self.kinds, self.record.counts, backbone), self.record.prefix
        # In a head's rows a layer of their backbone, such as a pooler, has the prefix.
        return {path: (name.removeprefix(prefix), how) for path, (name, how) in names.items()}

    def _tensors_of_head(self, kind, names):
        """Returns the tensors of a head; by default those of the backbone are with them.

        Args:
            kind: str, class name of a task.
            names: dict, see `FoundHead`.
        """
        return self.tensors.only(name for name, _ in names.values())

    def _ignorable_head_tensors(self, task):
        """Returns names of head tensors that the backbone may skip without a warning.

        The tensors are those of the task's own head, and of heads without which the encoder is of
        use too.
        """
        own, found = task and head_class_name(task, self.record.heads), set()
        for kind, head in self.record.heads.items():
            if kind == own or not head.changes_the_encoder:
                found.update(head.tied, (name for name, _ in self._expanded(head.rows).values()))
        return found

    def _arguments_of_head(self, found, names):
        """Returns arguments of tasks, from the config and from shapes; `None` means the default.

        Args:
            found: `FoundHead`.
            names: set of the arguments that the task takes. Those of others may be left out.
        """
        head, size = found.head, self._num_outputs(found)
        if rate := self.config.get(head.dropout):
            check_number(f"{head.dropout}` in `{self.path}", rate, below=1)
        return {
            "dropout": rate,
            "pooling": self.config.get(head.pooling),
            "num_classes": size,
            "dim": size,
            "problem_type": "regression" if size == 1 else "single_label",
        }

    def _num_outputs(self, found):
        """Returns the width of a head's last layer, or `None` for a head with several such."""
        name, transform = found.names.get("head/dense/kernel", (None, None))
        return name and transformed_shape(self.tensors.shapes[name], transform)[-1]


def merged(model):
    """Returns a model as a folder holds it, with merged adapters; refuses a quantized one."""
    check_not_quantized(model)
    return model.without_adapters()


def counterpart(model, library, of_format="HUGGING_FACE"):
    """Returns the record of a model's family, and of its head, which is `None` for a backbone.

    Args:
        model: a backbone or a task.
        library: str, the library that will read the model, for messages.
        of_format: str, a key of `RECORDS`.

    Raises:
        ValueError: the library does not have the family, the task, or the task's head.
    """
    backbone = getattr(model, "backbone", model)
    record = record_of(backbone, of_format)
    if record is None:
        known = [found.backbone for found in RECORDS[of_format]]
        advice = "Use `save_to_preset`, or export it for another library."
        refuse(type(backbone).__name__, known, library, advice)
    if backbone is model:
        return record, None
    kind = head_class_name(model, record.heads)
    if kind not in record.heads:
        refuse(type(model).__name__, sorted(record.heads), library)
    check_head(model, record.heads[kind], library)
    return record, record.heads[kind]


def written_config(record, backbone, library):
    """Returns another library's config of a backbone.

    Args:
        record: `Record` of the backbone's family.
        backbone: a `Backbone`.
        library: str, its name, for messages.

    Raises:
        ValueError: the library does not support a setting of the backbone.
    """
    ours = backbone.get_config()
    config = {theirs: ours[name] for theirs, name in record.config.items()}
    config |= {key: values[0] for key, values in record.allowed.items()}
    for field in record.fields:
        config |= field.write(ours)
    if (key := record.activation_key) is not None:
        theirs = {name: value for value, name in reversed(record.activations.items())}
        if ours["activation"] not in theirs:
            refuse(f"The activation {ours['activation']!r}", sorted(theirs), library)
        config[key] = theirs[ours["activation"]]
    for name, value in record.fixed.items():
        if ours[name] != value:
            advice = (
                "To export it with other numbers, save it as a preset and load that with "
                f"{name}={value!r} (a task with backbone={{{name!r}: {value!r}}})."
            )
            refuse(f"{name}={ours[name]!r}", value, library, advice)
    return config


def check_head(task, head, library):
    """Raises `ValueError` if a task's head does not compute what a record's head does.

    Args:
        task: a `Task`.
        head: `Head` of the record.
        library: str, its name, for the message.
    """
    plain = {"hidden_activation": None, "dropout_first": False, "norm": False, "use_bias": True}
    plain["projection"] = None
    for name in ("activation", "layer_norm_epsilon"):
        plain[name] = getattr(task.backbone, name)
    # A `Pretraining` has these options in its head for masked tokens.
    own = getattr(task.head, "masked_lm", task.head)
    for name, value in {**head.options, **plain, **head.options}.items():
        found = getattr(own, name, value)
        if name == "pooling" and head.pooling and found in POOLINGS:
            continue
        if name != "dropout" and found != value:
            options = "" if name in ("pooling", "projection") else " in `head_options`"
            advice = f"Export the backbone instead, or train with {name}={value!r}{options}."
            refuse(f"{type(task).__name__}'s {name}={found!r}", value, library, advice)


def tensors_of(variables, names, library, advice, num_heads=None):
    """Returns the values of variables as tensors of another library, the inverse of `assign`.

    Args:
        variables: dict, our path -> variable.
        names: dict, our path -> `(tensor name, transform)`. See `name_map.expand`.
        library: str, the other library, or its class, for the message.
        advice: str, what to do; the last sentence of the message.
        num_heads: int, see `name_map.transformed_back`.

    Raises:
        ValueError: the library has no counterpart of some variables.
    """
    if without_place := [path for path in variables if path not in names]:
        raise ValueError(
            f"{library} has no place for these weights: {without_place}. Without them the model "
            f"would answer differently. {advice}"
        )
    tensors = {}
    for path, array in arrays_of(variables).items():
        name, transform = names[path]
        tensors[name] = transformed_back(array, transform, num_heads)
    return tensors


def write_folder(folder, model, tensors, configs, tokenizer, stale, library, code="", more=None):
    """Writes the files of a model into a folder, all or on an error none.

    Args:
        folder: str or path, made when missing.
        model: the backbone or task that the card describes.
        tensors: dict, name -> array.
        configs: dict, name of a file -> its JSON value.
        tokenizer: a `Tokenizer`, or `None`.
        stale: names of files to remove if there is no new one.
        library, code: see `write_card`.
        more: function of the new folder that adds files, or `None`.
    """
    with replacing_files(folder, stale=(*weights_files(folder), *stale)) as new:
        write_safetensors(new / WEIGHTS_FILE, tensors)
        for name, value in configs.items():
            write_json(new / name, value)
        if tokenizer is not None:
            tokenizer.save(new, getattr(model, "backbone", model).input_names)
        if more is not None:
            more(new)
        write_card(new, model, folder, library, code)


def refuse(what, known, library, advice="Export the backbone instead."):
    """Raises `ValueError`: something has no counterpart in another library."""
    raise ValueError(f"{what} has no counterpart in {library}. Known there: {known}. {advice}")


def weights_of(backbone):
    """Returns a dict of a backbone's weights by path, without its adapters."""
    adapters = ("/lora_a", "/lora_b")
    weights = by_path(backbone.weights)
    return {path: weight for path, weight in weights.items() if not path.endswith(adapters)}
