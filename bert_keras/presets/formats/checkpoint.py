"""The base classes of opened presets, and how they use the record of a family.

An opened preset has

- `folder`: where its files are;
- `backbone_class(base)`: the backbone's class, which derives from `base`;
- `backbone(base, **overrides)`: a new backbone of the preset's family, with initial weights;
- `load_backbone_weights(backbone, task=None)`;
- `filling()`: a context that refuses models larger than the tensors can fill;
- `task_name()`: the registered name of the task whose head the preset holds, or `None`;
- `task_arguments(task)`: constructor arguments that the preset holds for a task, given as its class
  or the class's name;
- `load_head_weights(task)`;
- `tokenizer()`: the tokenizer of the folder;
- `preprocessor_config(task)`: the saved preprocessor's config, or `None`.
"""

import contextlib
import inspect
import math
import re

import keras

from bert_keras.checks import check_choice, check_number
from bert_keras.engine.atomic_files import reading
from bert_keras.engine.size_limit import filled_by
from bert_keras.presets.assign import assign, by_path, own_weights
from bert_keras.presets.families import kind_of
from bert_keras.presets.families.record import Head
from bert_keras.presets.name_map import expand, transformed_shape
from bert_keras.tokenizers.tokenizer import Tokenizer

# What a config may say of how a head pools.
POOLINGS = ("cls", "mean")


class Preset:
    """An opened preset folder of any format.

    Args:
        folder: `Path`.
        config: dict, its parsed config.
        path: `Path` of the config, for messages.
        name: str, what the user calls the preset.
    """

    def __init__(self, folder, config, path, name):
        self.folder, self.config, self.path = folder, config, path
        self.source = f"The preset {name!r}"

    registered_name = None

    def backbone(self, base, **overrides):
        """Returns a new backbone with initial weights, of a class that derives from `base`.

        Raises:
            ValueError: the config lacks a size, or asks for something the family does not have.
        """
        cls = self.backbone_class(base)
        with contextlib.nullcontext() if overrides else reading(self.path):
            return self._make(cls, overrides)

    def backbone_class(self, base):
        """Returns the backbone's class, which must derive from `base`.

        Raises:
            ValueError: nothing, or a class of another kind, is registered under its name.
        """
        return self.registered_class(self.registered_name, base)

    def registered_class(self, name, base):
        """Returns the class of a registered name, which must derive from `base`.

        Raises:
            ValueError: nothing, or a class of another kind, is registered under its name.
        """
        found = keras.saving.get_registered_object(name)
        if found is None:
            raise ValueError(
                f"{self.folder} holds {name!r}, which is not registered. Was it saved by a newer "
                "version of the package, or is a custom class not imported?"
            )
        if not (isinstance(found, type) and issubclass(found, base)):
            raise ValueError(f"{self.folder} holds {name!r}, which is not a {base.__name__}.")
        return found

    def filling(self):
        """Returns a context that refuses models larger than the tensors can fill."""
        return filled_by(self.source, lambda: sum(map(math.prod, self.tensors.shapes.values())))

    def tokenizer(self):
        """Returns the tokenizer whose files are in the folder."""
        return Tokenizer.load(self.folder)

    def preprocessor_config(self, task):
        """Returns `None`: only our own format has a preprocessor of ours."""
        return None


class Checkpoint(Preset):
    """A folder of another library, read by the family's record.

    A subclass says how its tensors are called (`kinds`) and read (`_read_backbone`, `_read_head`),
    whose head is there (`_is_of`), and what its config says of labels.
    """

    def __init__(self, folder, config, path, name, record):
        super().__init__(folder, config, path, name)
        self.record, self.registered_name = record, record.backbone

    def _make(self, cls, overrides):
        return cls(**{**self._backbone_arguments(cls), **overrides})

    def _backbone_arguments(self, cls):
        record, config = self.record, {**self.record.defaults, **self.config}
        given = {theirs: ours for theirs, ours in record.config.items() if theirs in config}
        arguments = {**record.fixed, **{ours: config[theirs] for theirs, ours in given.items()}}
        optional = {
            n for n, p in inspect.signature(cls).parameters.items() if p.default is not p.empty
        }
        required = [theirs for theirs, ours in record.config.items() if ours not in optional]
        if missing := [theirs for theirs in required if theirs not in given]:
            raise ValueError(
                f"{self.path} lacks {missing}, without which the model's shape is unknown."
            )
        for key, values in record.allowed.items():
            self._check_one_of(key, config.get(key, values[0]), values)
        if record.activation is not None:
            key, activations = record.activation
            name = config.get(key, next(iter(activations)))
            self._check_one_of(key, name, activations)
            arguments["activation"] = activations[name]
        for field in record.fields:
            try:
                arguments[field.argument] = field.read(config)
            except (TypeError, KeyError, AttributeError) as error:
                raise ValueError(
                    f"{self.path} must say what {field.argument} is. It does not ({error!r}). "
                    "Download it again, or write it there."
                ) from error
        return arguments

    def _check_one_of(self, name, value, values):
        advice = f"{self.registered_name} has no others."
        check_choice(f"{name}` in `{self.path}", value, values, advice)

    def load_backbone_weights(self, backbone, task=None):
        """Assigns every backbone weight its tensor; a missing pooler stays initial, with a warning.

        Args:
            backbone: what `backbone` returned.
            task: the task on it, or `None`; one that does not read the pooler needs no warning.

        Raises:
            FileNotFoundError: a file of the checkpoint is missing.
            ValueError: a file is damaged, or a name or a shape does not fit; both lists are
                printed. No weight was changed.
        """
        is_read = task is None or task.reads_pooled_output
        counts = {key: getattr(backbone, name) for key, name in self.record.counts.items()}
        assign(
            weights_of(backbone),
            self._expanded(self.record.rows, **counts),
            self._backbone_tensors(backbone),
            source=self.source,
            **{"optional" if is_read else "unread": self.record.optional},
        )

    def _backbone_tensors(self, backbone):
        tensors, tables = self._read_backbone(backbone), self.record.tables
        return tensors if tables is None else tables.read(tensors, backbone)

    def task_name(self):
        """Returns the registered name of the task whose head the checkpoint holds, or `None`."""
        found = (task for task in self.record.heads if self._is_of(task))
        return next((f"bert_keras>{task}" for task in found), None)

    def task_arguments(self, task):
        """Returns the task's arguments in the checkpoint: head, labels, problem type, dropout."""
        kind = kind_of(task, self.record.heads)
        head = self.record.heads.get(kind)
        if head is None or not self._has_head(kind):
            return {}
        said = {name: getattr(self, f"_{name}")(head) for name in head.says}
        if "pooling" in head.options:
            said.setdefault("pooling", head.options["pooling"])
            said["head_options"] = {
                name: value
                for name, value in head.options.items()
                if name not in ("pooling", "dropout")
            }
        return {name: value for name, value in said.items() if value is not None}

    def load_head_weights(self, task):
        """Assigns the head's weights; if the checkpoint has none, warns and keeps the initial ones.

        Raises:
            FileNotFoundError: a file of the checkpoint is missing.
            ValueError: a file is damaged, or a part of the head is missing or of another shape.
        """
        kind = kind_of(task, self.record.heads)
        head, names = self.record.heads.get(kind, Head()), self._head_names(kind)
        tensors = self._read_head(kind, names)
        found = {path for path, (name, _) in names.items() if name in tensors}
        absent = [part for part in head.parts if not any(path.startswith(part) for path in found)]
        assign(own_weights(task), names, tensors, optional=absent, source=self.source)

    def _head_names(self, task_class_name):
        return self._expanded(self.record.heads.get(task_class_name, Head()).rows)

    def _expanded(self, rows, **counts):
        return expand(rows, self.kinds, **counts)

    def _has_head(self, task_class_name):
        """Whether all tensors of a task's head are there."""
        names = self._head_names(task_class_name)
        tensors = self._read_head(task_class_name, names)
        return bool(names) and all(name in tensors for name, _ in names.values())

    def _is_of(self, task_class_name):
        """Whether the checkpoint is of that task."""
        return self._has_head(task_class_name)

    # Backbone and head in one file: the attribute `tensors`, all `Tensors` by the record's names.

    def _read_backbone(self, backbone):
        """Returns the tensors of the backbone."""
        tensors, heads = self.tensors, self._modules_of(self.record.heads)
        return tensors.only(name for name in tensors if _module(name) not in heads)

    def _read_head(self, task_class_name, names):
        """Returns the head's tensors by `names`, and what no other head accounts for."""
        tensors, own = self.tensors, self._modules_of([task_class_name])
        known = {n for task in self.record.heads for n, _ in self._head_names(task).values()}
        known = known.union(*(head.tied for head in self.record.heads.values()))
        known -= {name for name, _ in names.values()}
        return tensors.only(n for n in tensors if _module(n) in own and n not in known)

    def _modules_of(self, tasks):
        names = [name for task in tasks for name, _ in self._head_names(task).values()]
        return {_module(name) for name in names}

    # What a head says, see `Head.says`

    def _num_classes(self, head):
        name, transform = self._expanded(head.rows)["head/dense/kernel"]
        return transformed_shape(self.tensors.shapes[name], transform)[-1]

    def _problem_type(self, head):
        return "regression" if self._num_classes(head) == 1 else "single_label"

    def _pooling(self, head):
        pooling = self.config.get(head.pooling, head.options["pooling"])
        self._check_one_of(head.pooling, pooling, POOLINGS)
        return pooling

    def _dropout(self, head):
        rate = self.config.get(head.dropout)
        return rate and check_number(f"{head.dropout}` in `{self.path}", rate, below=1)


def written_config(record, backbone, there):
    """Returns another library's config of a backbone.

    Args:
        record: `Record` of the backbone's family.
        backbone: a `Backbone`.
        there: str, the library's name.

    Raises:
        ValueError: a setting of the backbone has no counterpart there.
    """
    ours = backbone.get_config()
    config = {theirs: ours[name] for theirs, name in record.config.items()}
    config |= {key: values[0] for key, values in record.allowed.items()}
    for field in record.fields:
        config |= field.write(ours)
    if record.activation is not None:
        key, activations = record.activation
        theirs = {name: value for value, name in reversed(activations.items())}
        if ours["activation"] not in theirs:
            refuse(f"The activation {ours['activation']!r}", sorted(theirs), there)
        config[key] = theirs[ours["activation"]]
    for name, value in record.fixed.items():
        if ours[name] != value:
            raise ValueError(
                f"{type(backbone).__name__} has {name}={value!r} in {there}, and no other. "
                f"Received: {ours[name]!r}, so that it would give other numbers there. To see how "
                f"far they are off, and to export it all the same, save the model as a preset and "
                f"load it with {name}={value!r} (a task with backbone={{{name!r}: {value!r}}})."
            )
    return config


def check_head(task, head, there):
    """Raises `ValueError` if a task's head computes something other than the head of a record.

    Args:
        task: a `Task`.
        head: `Head` of the record.
        there: str, the library's name.
    """
    plain = {"hidden_activation": None, "dropout_first": False, "norm": False, "use_bias": True}
    for name in ("activation", "layer_norm_epsilon"):
        plain[name] = getattr(task.backbone, name)
    # Of heads side by side it is that of masked tokens which has options.
    own = getattr(task.head, "masked_lm", task.head)
    for name, value in {**head.options, **plain, **head.options}.items():
        found = getattr(own, name, value)
        if name == "pooling" and head.pooling and found in POOLINGS:
            continue
        if name != "dropout" and found != value:
            options = "" if name == "pooling" else " in `head_options`"
            raise ValueError(
                f"{there} has a head with {name}={value!r} for a {type(task).__name__} of this "
                f"family. Received: {name}={found!r}, which has no counterpart there. Export its "
                f"backbone instead, or train with {name}={value!r}{options}."
            )


def refuse(what, known, there):
    """Raises `ValueError`: something has no counterpart in another library."""
    raise ValueError(
        f"{what} has no counterpart in {there}. These have: {known}. Export its backbone instead."
    )


def _module(name):
    """Returns the first component of a tensor's name."""
    return re.split("[./]", name, maxsplit=1)[0]


def weights_of(backbone):
    """Returns a dict of a backbone's weights by their paths, its adapters left out."""
    adapters = {id(weight) for weight in backbone.adapter_weights}
    return by_path(weight for weight in backbone.weights if id(weight) not in adapters)


def paths_taken(task, saved):
    """Returns the paths of a task's head weights in a saved head.

    Args:
        task: a task.
        saved: class name of the task that was saved, or `None`.

    Returns:
        A dict, relative path of the weight -> path there.
    """
    is_own = kind_of(task, [saved]) == saved
    prefixes = {"head/": "head/"} if is_own else task.takes_head_of.get(saved, {})
    return {
        path: theirs + path.removeprefix(ours)
        for path in own_weights(task)
        for ours, theirs in prefixes.items()
        if path.startswith(ours)
    }
