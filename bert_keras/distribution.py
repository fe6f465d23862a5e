"""Several devices, one `fit`: whose rows of a batch are whose, and what all add up to.

The engines are the backends' own; here stands how this package shares its work among what they
join:

| backend | devices of one process | several processes |
|---|---|---|
| JAX | `keras.distribution` | the same, joined by `keras.distribution.initialize` |
| PyTorch | | a process a device, started by `torchrun` |
| TensorFlow | `tf.distribute.MirroredStrategy` | |

Every process is given the same data and takes its own rows of each batch. So `batch_size` is that
of all devices together, and a run gives the same weights on one device as on many.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import keras
import numpy as np

from bert_keras.checks import check_int

__all__ = ["initialize", "layout_map", "process"]

_BACKEND = keras.backend.backend()


def initialize(devices: int | None = None) -> int:
    """Shares the work of all models that are made from now on among devices.

    - JAX: sets `keras.distribution.DataParallel` over the devices of all processes, which it joins
      first where KERAS_DISTRIBUTION_NUM_PROCESSES is set, see `keras.distribution.initialize`.
    - PyTorch: joins the processes that `torchrun` has started, each on the GPU of its number, or
      all on the CPU.
    - TensorFlow: sets `tf.distribute.MirroredStrategy` over the devices of this process.

    Without accelerators JAX and TensorFlow count the processor as so many devices, which shows that
    a program runs, and saves no time.

    Args:
        devices: int, of all processes together; `None` for all that there are.

    Returns:
        int, the number of devices.

    Raises:
        ValueError: there are fewer, or with several processes more.
    """
    if devices is not None:
        check_int("devices", devices)
    start = {"jax": _start_jax, "torch": _start_torch, "tensorflow": _start_tensorflow}
    return start[_BACKEND](devices)


def _start_jax(devices):
    import jax

    is_one_of_several = is_launched()
    if is_one_of_several:
        keras.distribution.initialize()
    elif devices is not None:
        with contextlib.suppress(RuntimeError):  # JAX has begun, and has the devices that it has.
            jax.config.update("jax_num_cpu_devices", devices)
    found = keras.distribution.list_devices()
    _check_there_are(devices, len(found), is_one_of_several, "Call it before all else of JAX.")
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=found[:devices]))
    return len(found[:devices])


def _start_torch(devices):
    import torch

    distributed = torch.distributed
    if is_launched() and not distributed.is_initialized():
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        # What a run reads as numbers stays on the processor.
        has_gpu = torch.cuda.is_available()
        distributed.init_process_group("cpu:gloo,cuda:nccl" if has_gpu else "gloo")
    found = process()[1]
    advice = f"Start one for each: torchrun --nproc_per_node {devices} program.py"
    _check_there_are(devices, found, True, advice)
    return found


def _start_tensorflow(devices):
    import tensorflow as tf

    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    if kind == "CPU" and devices is not None:
        parts = [tf.config.LogicalDeviceConfiguration()] * devices
        with contextlib.suppress(RuntimeError):  # TensorFlow has begun.
            processor = tf.config.list_physical_devices("CPU")[0]
            tf.config.set_logical_device_configuration(processor, parts)
    found = [device.name for device in tf.config.list_logical_devices(kind)]
    _check_there_are(devices, len(found), False, "Call it before all else of TensorFlow.")
    if len(found[:devices]) > 1:
        strategy = tf.distribute.MirroredStrategy(found[:devices])
        tf.distribute.experimental_set_strategy(strategy)
    return len(found[:devices])


def has_accelerator() -> bool:
    """Returns whether the backend computes on something else than a CPU."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        return jax.default_backend() != "cpu"
    if backend == "torch":
        return "cpu" not in str(keras.ops.zeros(()).device)
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))


def _check_there_are(devices, found, needs_all, advice):
    if devices is not None and (devices > found or (needs_all and devices != found)):
        raise ValueError(
            f"`devices` must be {'' if needs_all else 'at most '}those that there are, {found}. "
            f"Received: {devices}. {advice}"
        )


def layout_map(
    backbone: keras.Model, mesh: keras.distribution.DeviceMesh, axis: str = "model"
) -> keras.distribution.LayoutMap:
    """Returns where each large weight of a backbone lies on several devices.

    For `keras.distribution.ModelParallel`, with JAX, where a model is too large for one device.
    Each block's query, key, value and first feed-forward kernels are cut by columns, its output
    kernels by rows, and the table of tokens by rows or, where these cannot be shared evenly, by
    columns. What is not named, norms and heads among it, lies whole on each device; the moments of
    an optimizer lie where their weights do.

    Args:
        backbone: a `Backbone` of the sizes wanted, such as `from_preset(name, load_weights=False)`
            makes before there is a distribution; the model itself is made within it.
        mesh: a `keras.distribution.DeviceMesh`.
        axis: str, the axis of the mesh that weights are cut along.

    Returns:
        A `keras.distribution.LayoutMap`.

    Raises:
        ValueError: the mesh has no such axis, or a kernel cannot be cut evenly.

    Example:
    ```python
    mesh = keras.distribution.DeviceMesh((2, 4), ("batch", "model"))
    backbone = bert_keras.BertBackbone.from_preset("bert_large_en_uncased", load_weights=False)
    layouts = bert_keras.distribution.layout_map(backbone, mesh)
    with keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch").scope():
        classifier = bert_keras.TextClassifier.from_preset("bert_large_en_uncased")
        classifier.fit(texts, labels)
    ```

    Reference:
        [Shoeybi et al., 2019](https://arxiv.org/abs/1909.08053), section 3.
    """
    if axis not in mesh.axis_names:
        raise ValueError(
            f"`axis` must be one of the mesh's, {list(mesh.axis_names)}. Received: {axis!r}."
        )
    parts, layouts = mesh.shape[list(mesh.axis_names).index(axis)], {}
    for layers in backbone.adaptable.values():
        for layer in layers:
            if layer.kernel.shape[layer.cut_axis] % parts:
                raise ValueError(
                    f"Kernels must be cut evenly into {parts}, the mesh's size along {axis!r}. "
                    f"Received: {layer.kernel.path} {tuple(layer.kernel.shape)}. Make that axis of "
                    "the mesh a divisor of the backbone's widths."
                )
            layouts[layer.kernel.path] = (None, axis) if layer.cut_axis else (axis, None)
            if layer.cut_axis and layer.bias is not None:
                layouts[layer.bias.path] = (axis,)
    table = backbone.token_embedding.embeddings
    if table.shape[0] % parts == 0:
        layouts[table.path] = (axis, None)
    elif table.shape[1] % parts == 0:
        layouts[table.path] = (None, axis)
    found = keras.distribution.LayoutMap(mesh)
    for path, layout in layouts.items():
        # Whatever the name of the backbone, or what it is a part of.
        found[f"(.*/)?{re.escape(path.split('/', 1)[1])}"] = layout
    return found


# Processes


def process() -> tuple[int, int]:
    """Returns the number of this process and how many share a run, two ints.

    Raises:
        RuntimeError: PyTorch's processes have not been joined.
    """
    if _BACKEND == "jax":
        import jax

        return jax.process_index(), jax.process_count()
    if _BACKEND != "torch":
        return 0, 1
    import torch

    if _torch_processes() > 1:
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    if is_launched():
        raise RuntimeError(
            "Processes of `torchrun` must be joined before a model is made, or each would train a "
            "model of its own. Received: processes that are not. Call "
            "`bert_keras.distribution.initialize()` first."
        )
    return 0, 1


def is_launched() -> bool:
    """Returns whether a launcher has started this process as one of several, joined or not yet."""
    if _BACKEND == "torch":
        return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ["WORLD_SIZE"]) > 1
    return _BACKEND == "jax" and "KERAS_DISTRIBUTION_NUM_PROCESSES" in os.environ


def of_first(value: Any) -> Any:
    """Returns what the first process gave, an int below 2^31 or a list of such, in all of them."""
    if process()[1] == 1:
        return value
    if _BACKEND == "torch":
        import torch

        found = [value]
        torch.distributed.broadcast_object_list(found)
        return found[0]
    from jax.experimental import multihost_utils

    return multihost_utils.broadcast_one_to_all(np.asarray(value, "int32")).tolist()


def begin_alike(model: keras.Model) -> None:
    """Gives a compiled model the weights and moments of the first process; on JAX it has them."""
    if _torch_processes() > 1:
        import torch

        for variable in (*model.variables, *model.optimizer.variables):
            torch.distributed.broadcast(variable.value.detach(), 0)


def _torch_processes():
    """Returns how many were joined, without a look around that `torch.compile` cannot trace."""
    if _BACKEND != "torch":
        return 1
    import torch

    distributed = torch.distributed
    is_joined = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if is_joined else 1


def as_numpy(variable: keras.Variable) -> np.ndarray:
    """Returns a variable's value as a NumPy array, of parts on other processes' devices too."""
    value = variable.value
    if _BACKEND == "jax" and not (value.is_fully_addressable or value.is_fully_replicated):
        from jax.experimental import multihost_utils

        return np.asarray(multihost_utils.process_allgather(value, tiled=True))
    return keras.ops.convert_to_numpy(variable)


# Batches


class Share(NamedTuple):
    """The rows of each batch that this process computes; called, it takes them.

    Attributes:
        number: int, of this share.
        shares: int, how many a batch has.
        replicas: int, devices that a batch's rows are for: it is filled up to a multiple of them
            with copies of its first row, which weigh 0.
        fills: bool, whether it may be; not where rows that weigh 0 would count.
    """

    number: int = 0
    shares: int = 1
    replicas: int = 1
    fills: bool = True

    def __call__(self, batch: Any, index: int | None = None) -> Any:
        """Returns the rows of a batch `(inputs[, labels[, weights]])` of NumPy arrays."""
        if self.replicas == 1:
            return batch
        inputs, *others = batch if isinstance(batch, tuple) else (batch,)
        if "row_places" in inputs:
            raise ValueError(
                "Rows without padding belong to a whole batch, which several devices cannot share. "
                "Received: unpadded=True. Leave it out, or train on one device."
            )
        num_rows = len(keras.tree.flatten(inputs)[0])
        places = np.arange(-(-num_rows // self.replicas) * self.replicas)
        is_real = places < num_rows
        self.check_rows(num_rows)
        if len(others) == 1 and self.fills:
            # Also where none is filled: by the first batch Keras knows the parts of all.
            others.append(keras.tree.map_structure(lambda y: np.ones(len(y), "f"), others[0]))
        places[num_rows:] = 0
        mine = np.split(places, self.shares)[self.number]
        is_mine = np.split(is_real, self.shares)[self.number]
        taken = [keras.tree.map_structure(lambda x: x[mine], part) for part in (inputs, *others)]
        if len(taken) == 3 and not is_mine.all():
            taken[2] = keras.tree.map_structure(
                lambda w: w * is_mine.reshape(-1, *[1] * (w.ndim - 1)).astype(w.dtype), taken[2]
            )
        return tuple(taken)

    def check_rows(self, num_rows: int) -> None:
        """Raises `ValueError` for a batch that must be filled up and may not be."""
        if num_rows % self.replicas and not self.fills:
            raise ValueError(
                f"Batches must have a multiple of {self.replicas} rows, the number of devices, "
                f"where rows that weigh 0 count. Received: {num_rows} rows, and a loss or metrics "
                "of your own. Leave `loss` and `metrics` out, pass `weighted_metrics`, or take as "
                "many examples as fit."
            )


def share_of(model: keras.Model, whole: bool = False) -> Share:
    """Returns the `Share` of this process in the batches of a model's `fit` and `evaluate`.

    Args:
        model: a `keras.Model`.
        whole: bool, whether every process has all examples, rather than batches of its own.

    Raises:
        RuntimeError: processes that do not know of one another would each train by themselves.
        ValueError: the backend cannot share a batch this way, or would compute a wrong result.
    """
    number, shares, replicas = 0, 1, 1
    found = keras.distribution.distribution() if _BACKEND == "jax" else None
    if _BACKEND == "torch":
        number, shares = process()
        replicas = shares
    elif _BACKEND == "tensorflow":
        replicas = _replicas(model)
    elif found is None and process()[1] > 1:
        raise RuntimeError(
            "JAX's processes have been joined, and no distribution says how they share a "
            "batch. Call `bert_keras.distribution.initialize()` before a model is made, or "
            "`keras.distribution.set_distribution(...)`."
        )
    elif found is not None:
        replicas = found.num_model_replicas
        shares = min(found.num_processes, replicas)
        if found.auto_shard_dataset:
            number = found.data_shard_id
        elif whole and found.num_processes > 1:
            raise ValueError(
                "Texts and arrays are given whole to every process, which takes its rows of each "
                "batch. Received: a distribution with auto_shard_dataset=False, for data that was "
                "shared out before. Leave it out, or pass a PyDataset of this process's batches."
            )
        else:  # The batches are this process's own.
            replicas, shares = max(1, replicas // shares), 1
    if replicas == 1:
        return Share()
    recipe = getattr(model, "recipe", None)
    return Share(number, shares, replicas, getattr(recipe, "ignores_weight_0", True))


def _replicas(model):
    strategy = model.distribute_strategy
    if strategy.num_replicas_in_sync > 1 and type(strategy).__name__ != "MirroredStrategy":
        raise ValueError(
            "With TensorFlow several devices of one machine are shared by "
            f"tf.distribute.MirroredStrategy. Received: {type(strategy).__name__}, with which "
            "Keras 3 cannot train. For several machines use JAX or PyTorch, see "
            "`bert_keras.distribution.initialize`."
        )
    return strategy.num_replicas_in_sync


def check_engine() -> None:
    """Raises `ValueError` for a `keras.distribution` that the backend would not heed."""
    if _BACKEND != "jax" and keras.distribution.distribution() is not None:
        way = {
            "torch": "start a process for each device by torchrun",
            "tensorflow": "make the model within tf.distribute.MirroredStrategy().scope()",
        }
        raise ValueError(
            f"keras.distribution does nothing with {_BACKEND}: it is for JAX. Received: "
            f"{keras.distribution.distribution()}. Take it away, "
            f"`keras.distribution.set_distribution(None)`, and {way[_BACKEND]}; "
            "`bert_keras.distribution.initialize()` does the rest."
        )


@contextlib.contextmanager
def batches_are_shares() -> AbstractContextManager[None]:
    """Within it JAX's distribution knows that a process yields its own rows."""
    found = keras.distribution.distribution()
    if found is None or not found.auto_shard_dataset:
        yield
        return
    found.auto_shard_dataset = False
    try:
        yield
    finally:
        found.auto_shard_dataset = True


def scope_of(model: keras.Model) -> AbstractContextManager[Any]:
    """Returns the context in which variables of TensorFlow are made for a model's devices."""
    return (
        model.distribute_strategy.scope() if _BACKEND == "tensorflow" else contextlib.nullcontext()
    )


def over_devices(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function like `compute(weights, inputs)`, compiled by JAX for its distribution.

    Args:
        compute: function of a list of arrays and of a dict of NumPy arrays, which every process is
            given whole.

    Returns:
        A function that returns NumPy arrays of all rows.
    """
    import jax

    found = keras.distribution.distribution()
    whole = jax.sharding.NamedSharding(found.device_mesh.backend_mesh, jax.sharding.PartitionSpec())
    compiled = jax.jit(compute, out_shardings=whole)
    fill = Share(replicas=found.num_model_replicas)

    def place(array):
        layout = found.get_data_layout(array.shape).backend_layout
        return jax.make_array_from_callback(array.shape, layout, lambda index: array[index])

    def run(weights, inputs):
        num_rows = len(keras.tree.flatten(inputs)[0])
        (filled,) = fill((inputs,)) if fill.replicas > 1 else (inputs,)
        outputs = compiled(weights, keras.tree.map_structure(place, filled))
        return keras.tree.map_structure(lambda x: np.asarray(x)[:num_rows], outputs)

    return run


# Sums over devices. JAX computes with whole batches, wherever their rows are.


def _replica():
    """Returns TensorFlow's replica at work, or `None` where one device has all rows."""
    import tensorflow as tf

    found = tf.distribute.get_replica_context()
    return found if found is not None and found.num_replicas_in_sync > 1 else None


def summed(gradients: Sequence[Any]) -> Sequence[Any]:
    """Returns gradients over the rows of all devices.

    Of PyTorch's processes it is their mean; TensorFlow's losses are divided already.

    Args:
        gradients: list of tensors, or of `None` among them; PyTorch's are changed in place.
    """
    if (count := _torch_processes()) > 1:
        import torch

        there = [gradient for gradient in gradients if gradient is not None]
        works = [torch.distributed.all_reduce(each, async_op=True) for each in there]
        for work, gradient in zip(works, there, strict=True):
            work.wait()
            gradient /= count
    elif _BACKEND == "tensorflow" and (replica := _replica()):
        there = [gradient for gradient in gradients if gradient is not None]
        sums = iter(replica.all_reduce("SUM", there) if there else ())
        return [gradient if gradient is None else next(sums) for gradient in gradients]
    return gradients


def times_share(loss: Any, weights: Any) -> Any:
    """Returns a mean over this device's weights, such that the mean over devices is one over all.

    `loss * (sum of weights here) * (number of devices) / (sum of weights everywhere)`: a device
    whose rows have more masked tokens, or less padding, counts more, as in a batch on one device.

    Args:
        loss: float scalar tensor.
        weights: tensor, or `None` where all devices have as many.
    """
    if weights is None or _BACKEND == "jax":
        return loss
    ops = keras.ops
    here = ops.sum(ops.cast(weights, "float32"))
    if _BACKEND == "torch":
        import torch

        count = _torch_processes()
        if count == 1 or here.device.type == "meta":  # Keras asks for shapes.
            return loss
        everywhere = here.clone()
        torch.distributed.all_reduce(everywhere)
    else:
        replica = _replica()
        if replica is None:
            return loss
        count, everywhere = replica.num_replicas_in_sync, replica.all_reduce("SUM", here)
    return loss * ops.cast(ops.divide_no_nan(here * count, everywhere), loss.dtype)


def sum_states(variables: Iterable[keras.Variable]) -> None:
    """Adds up what PyTorch's processes have counted, in place; others' devices have one count."""
    if _torch_processes() > 1:
        import torch

        for variable in variables:
            torch.distributed.all_reduce(variable.value.detach())
