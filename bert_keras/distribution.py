"""Training on several devices: how they share the rows of a batch and add up their results.

Each backend has its own way to join devices, which this module uses:

| backend | devices of one process | several processes |
|---|---|---|
| JAX | `keras.distribution` | the same, joined by `keras.distribution.initialize` |
| PyTorch | | one process per device, started by `torchrun` |
| TensorFlow | `tf.distribute.MirroredStrategy` | |

Every process is given the same data and takes its own rows of each batch. `batch_size` is that of
all devices together, so a run gives the same weights on one device as on many.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import keras
import numpy as np

from bert_keras.checks import check_choice, check_int

__all__ = ["initialize", "layout_map", "process"]

_BACKEND = keras.backend.backend()


def initialize(devices: int | None = None) -> int:
    """Shares the work of all models that are made after this call among devices.

    - JAX: sets `keras.distribution.DataParallel` over the devices of all processes. If
      KERAS_DISTRIBUTION_NUM_PROCESSES is set, it first joins them, see
      `keras.distribution.initialize`.
    - PyTorch: joins the processes that `torchrun` started, each on the GPU with its number, or all
      on the CPU.
    - TensorFlow: sets `tf.distribute.MirroredStrategy` over the devices of this process.

    Without accelerators, JAX and TensorFlow split the CPU into this many devices. That tests a
    program, but saves no time.

    Args:
        devices: int, the number of devices of all processes together; `None` for all available.

    Returns:
        int, the number of devices.

    Raises:
        ValueError: fewer devices are available or, with several processes, more.
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
        with contextlib.suppress(RuntimeError):  # JAX has already started with other devices.
            jax.config.update("jax_num_cpu_devices", devices)
    available = keras.distribution.list_devices()
    _check_available(
        devices, len(available), is_one_of_several, "Call it before any other use of JAX."
    )
    chosen = available[:devices]
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=chosen))
    return len(chosen)


def _start_torch(devices):
    import torch

    if is_launched() and not torch.distributed.is_initialized():
        backends = "gloo"
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
            backends = "cpu:gloo,cuda:nccl"  # What a run reads as Python numbers stays on the CPU.
        torch.distributed.init_process_group(backends)
    num_processes = process()[1]
    advice = f"Start a process for each: torchrun --nproc_per_node {devices} program.py"
    _check_available(devices, num_processes, True, advice)
    return num_processes


def _start_tensorflow(devices):
    import tensorflow as tf

    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    if kind == "CPU" and devices is not None:
        logical = [tf.config.LogicalDeviceConfiguration()] * devices
        with contextlib.suppress(RuntimeError):  # TensorFlow has already started.
            cpu = tf.config.list_physical_devices("CPU")[0]
            tf.config.set_logical_device_configuration(cpu, logical)
    available = [device.name for device in tf.config.list_logical_devices(kind)]
    _check_available(devices, len(available), False, "Call it before any other use of TensorFlow.")
    chosen = available[:devices]
    if len(chosen) > 1:
        tf.distribute.experimental_set_strategy(tf.distribute.MirroredStrategy(chosen))
    return len(chosen)


def _check_available(devices, available, needs_all, advice):
    if devices is not None and (devices > available or (needs_all and devices != available)):
        raise ValueError(
            f"`devices` must be {'' if needs_all else 'at most '}{available}, the number "
            f"available. Received: {devices}. {advice}"
        )


def layout_map(
    backbone: keras.Model, mesh: keras.distribution.DeviceMesh, axis: str = "model"
) -> keras.distribution.LayoutMap:
    """Returns how the large weights of a backbone are split among several devices.

    For `keras.distribution.ModelParallel` with JAX, if a model is too large for one device. In each
    block the query, key, value and first feed-forward kernels are split by columns, and the output
    kernels by rows. The token table is split by rows or, if they do not divide evenly, by columns.
    All other weights, such as norms and heads, are whole on each device. The optimizer's moments
    are split like their weights.

    Args:
        backbone: a `Backbone` of the same sizes as the model, such as `from_preset(name,
            load_weights=False)` returns. Make it before the distribution is set, and the model
            within its scope.
        mesh: a `keras.distribution.DeviceMesh`.
        axis: str, the axis of the mesh along which weights are split.

    Returns:
        A `keras.distribution.LayoutMap`.

    Raises:
        ValueError: the mesh has no such axis, or a kernel cannot be split evenly.

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
    check_choice("axis", axis, mesh.axis_names, "It must be an axis of the mesh.")
    size, axes = mesh.shape[list(mesh.axis_names).index(axis)], {}
    for layers in backbone.adaptable.values():
        for layer in layers:
            if layer.kernel.shape[layer.shard_axis] % size:
                raise ValueError(
                    f"Kernels must split evenly into {size}, the size of the mesh along {axis!r}. "
                    f"Received: {layer.kernel.path} {tuple(layer.kernel.shape)}. Make the size of "
                    "that axis a divisor of the backbone's widths."
                )
            axes[layer.kernel.path] = (None, axis) if layer.shard_axis else (axis, None)
            if layer.shard_axis and layer.bias is not None:
                axes[layer.bias.path] = (axis,)
    table = backbone.token_embedding.embeddings
    if table.shape[0] % size == 0:
        axes[table.path] = (axis, None)
    elif table.shape[1] % size == 0:
        axes[table.path] = (None, axis)
    layouts = keras.distribution.LayoutMap(mesh)
    for path, weight_axes in axes.items():
        # Matches whatever the backbone is called, and whatever contains it.
        layouts[f"(.*/)?{re.escape(path.split('/', 1)[1])}"] = weight_axes
    return layouts


# Processes


def process() -> tuple[int, int]:
    """Returns the number of this process and the number of processes that share a run, two ints.

    Raises:
        RuntimeError: the processes of `torchrun` have not been joined.
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
            "Processes of `torchrun` must be joined before a model is made, or each would train "
            "its own model. Received: processes not joined. Call "
            "`bert_keras.distribution.initialize()` first."
        )
    return 0, 1


def is_launched() -> bool:
    """Returns whether a launcher started this process as one of several, joined or not."""
    if _BACKEND == "torch":
        return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ["WORLD_SIZE"]) > 1
    return _BACKEND == "jax" and "KERAS_DISTRIBUTION_NUM_PROCESSES" in os.environ


def broadcast_from_rank0(value: Any) -> Any:
    """Returns the first process's value in all processes: an int below 2^31, or a list of these."""
    if process()[1] == 1:
        return value
    if _BACKEND == "torch":
        import torch

        values = [value]
        torch.distributed.broadcast_object_list(values)
        return values[0]
    from jax.experimental import multihost_utils

    return multihost_utils.broadcast_one_to_all(np.asarray(value, "int32")).tolist()


def copy_first_weights(model: keras.Model) -> None:
    """Copies the first process's weights and moments to all; on JAX they are equal already."""
    if _torch_processes() > 1:
        import torch

        for variable in (*model.variables, *model.optimizer.variables):
            torch.distributed.broadcast(variable.value.detach(), 0)


def _torch_processes():
    """Returns the number of joined processes, in a way that `torch.compile` can trace."""
    if _BACKEND != "torch":
        return 1
    import torch

    distributed = torch.distributed
    is_joined = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if is_joined else 1


def as_numpy(variable: keras.Variable) -> np.ndarray:
    """Returns a variable's value as a NumPy array, including parts on other processes' devices."""
    value = variable.value
    if _BACKEND == "jax" and not (value.is_fully_addressable or value.is_fully_replicated):
        from jax.experimental import multihost_utils

        return np.asarray(multihost_utils.process_allgather(value, tiled=True))
    return keras.ops.convert_to_numpy(variable)


# Batches


class DataShard(NamedTuple):
    """The rows of each batch that this process computes; a call selects them.

    Attributes:
        number: int, the number of this share.
        shares: int, the number of shares of a batch.
        replicas: int, the number of devices. A batch is filled up to a multiple of it with copies
            of its first row, which have weight 0.
        fills: bool, whether batches may be filled up; `False` if rows of weight 0 would count.
    """

    number: int = 0
    shares: int = 1
    replicas: int = 1
    fills: bool = True

    def __call__(self, batch: Any, index: int | None = None) -> Any:
        """Returns the rows of a batch `(inputs[, labels[, weights]])` of NumPy arrays."""
        if self.replicas == 1:
            return batch
        inputs, *targets = batch if isinstance(batch, tuple) else (batch,)
        num_rows = len(keras.tree.flatten(inputs)[0])
        places = np.arange(-(-num_rows // self.replicas) * self.replicas)
        is_real = places < num_rows
        self.check_rows(num_rows)
        if len(targets) == 1 and self.fills:
            # Add weights even to a full batch: Keras infers the structure of all from the first.
            targets.append(keras.tree.map_structure(lambda y: np.ones(len(y), "f"), targets[0]))
        places[num_rows:] = 0
        rows = np.split(places, self.shares)[self.number]
        is_real = np.split(is_real, self.shares)[self.number]
        share = [keras.tree.map_structure(lambda x: x[rows], value) for value in (inputs, *targets)]
        if len(share) == 3 and not is_real.all():
            share[2] = keras.tree.map_structure(
                lambda w: w * is_real.reshape(-1, *[1] * (w.ndim - 1)).astype(w.dtype), share[2]
            )
        return tuple(share)

    @property
    def has_own_losses(self) -> bool:
        """Whether each device computes the loss of its own rows. JAX has one loss of all rows."""
        return self.replicas > 1 and _BACKEND != "jax"

    def check_rows(self, num_rows: int) -> None:
        """Raises `ValueError` if a batch would have to be filled up but must not be."""
        if num_rows % self.replicas and not self.fills:
            raise ValueError(
                f"Batches must have a multiple of {self.replicas} rows, the number of devices, if "
                f"rows of weight 0 count. Received: {num_rows} rows, and a loss that compares "
                "rows, or a loss or metrics of your own. Change the number of examples; or leave "
                "out `loss` and `metrics`, and pass `weighted_metrics`."
            )


def shard_of(model: keras.Model, whole: bool = False) -> DataShard:
    """Returns the `DataShard` of this process in the batches of a model's `fit` and `evaluate`.

    Args:
        model: a `keras.Model`.
        whole: bool, whether every process has all examples, not only its own batches.

    Raises:
        RuntimeError: processes that are not joined would each train a model of their own.
        ValueError: the backend cannot share a batch in this way, or would compute a wrong result.
    """
    number, shares, replicas = 0, 1, 1
    distribution = keras.distribution.distribution() if _BACKEND == "jax" else None
    if _BACKEND == "torch":
        number, shares = process()
        replicas = shares
    elif _BACKEND == "tensorflow":
        replicas = _replicas(model)
    elif distribution is None and process()[1] > 1:
        raise RuntimeError(
            "JAX's processes have been joined, but there is no distribution of batches among "
            "them. Call `bert_keras.distribution.initialize()` before a model is made, or "
            "`keras.distribution.set_distribution(...)`."
        )
    elif distribution is not None:
        replicas = distribution.num_model_replicas
        shares = min(distribution.num_processes, replicas)
        if distribution.auto_shard_dataset:
            number = distribution.data_shard_id
        elif whole and distribution.num_processes > 1:
            raise ValueError(
                "Texts and arrays must be split among processes by the distribution. Received: "
                "auto_shard_dataset=False, which is for data that was split before. Leave it out, "
                "or pass a PyDataset of this process's batches."
            )
        else:  # The batches are this process's own.
            replicas, shares = max(1, replicas // shares), 1
    if replicas == 1:
        return DataShard()
    fills = getattr(model, "ignores_weight_0", lambda: True)  # Only a task knows.
    return DataShard(number, shares, replicas, fills())


def _replicas(model):
    strategy = model.distribute_strategy
    if strategy.num_replicas_in_sync > 1 and type(strategy).__name__ != "MirroredStrategy":
        raise ValueError(
            "On TensorFlow, several devices of one machine must be joined by "
            f"tf.distribute.MirroredStrategy. Received: {type(strategy).__name__}, with which "
            "Keras 3 cannot train. For several machines use JAX or PyTorch, see "
            "`bert_keras.distribution.initialize`."
        )
    return strategy.num_replicas_in_sync


def check_engine() -> None:
    """Raises `ValueError` for a `keras.distribution` that the backend would ignore."""
    if _BACKEND != "jax":
        advice = {
            "torch": "start a process for each device with torchrun",
            "tensorflow": "make the model within tf.distribute.MirroredStrategy().scope()",
        }
        raise ValueError(
            f"keras.distribution only works on JAX, and does nothing with {_BACKEND}. Received: "
            f"{keras.distribution.distribution()}. Remove it with "
            f"`keras.distribution.set_distribution(None)`, and {advice[_BACKEND]}; "
            "`bert_keras.distribution.initialize()` does the rest."
        )


@contextlib.contextmanager
def batches_are_shares() -> AbstractContextManager[None]:
    """A context in which JAX's distribution does not split batches that are already split."""
    distribution = keras.distribution.distribution()
    splits = getattr(distribution, "auto_shard_dataset", False)
    if splits:
        distribution.auto_shard_dataset = False
    try:
        yield
    finally:
        if splits:
            distribution.auto_shard_dataset = True


def over_devices(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles `compute(weights, inputs)` with JAX for the current distribution.

    Args:
        compute: function of a list of arrays and a dict of NumPy arrays, both whole in every
            process.

    Returns:
        A function that returns NumPy arrays of all rows.
    """
    import jax

    distribution = keras.distribution.distribution()
    mesh = distribution.device_mesh.backend_mesh
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    compiled = jax.jit(compute, out_shardings=whole)
    fill = DataShard(replicas=distribution.num_model_replicas)

    def place(array):
        layout = distribution.get_data_layout(array.shape).backend_layout
        return jax.make_array_from_callback(array.shape, layout, lambda index: array[index])

    def run(weights, inputs):
        num_rows = len(keras.tree.flatten(inputs)[0])
        (filled,) = fill((inputs,)) if fill.replicas > 1 else (inputs,)
        outputs = compiled(weights, keras.tree.map_structure(place, filled))
        return keras.tree.map_structure(lambda x: np.asarray(x)[:num_rows], outputs)

    return run


# Sums over devices. JAX needs none: it computes with whole batches, wherever their rows are.


def _replica():
    """Returns TensorFlow's current replica, or `None` if one device has all rows."""
    import tensorflow as tf

    replica = tf.distribute.get_replica_context()
    return replica if replica is not None and replica.num_replicas_in_sync > 1 else None


def summed(gradients: Sequence[Any]) -> Sequence[Any]:
    """Returns the gradients over the rows of all devices.

    PyTorch's gradients are averaged; TensorFlow's are summed, since its losses are divided before.

    Args:
        gradients: list of tensors and `None`; PyTorch's are changed in place.
    """
    count, replica = _torch_processes(), _BACKEND == "tensorflow" and _replica()
    if count == 1 and not replica:
        return gradients
    present = [gradient for gradient in gradients if gradient is not None]
    if count > 1:
        import torch

        handles = [torch.distributed.all_reduce(each, async_op=True) for each in present]
        for handle, gradient in zip(handles, present, strict=True):
            handle.wait()
            gradient /= count
        return gradients
    sums = iter(replica.all_reduce("SUM", present) if present else ())
    return [gradient if gradient is None else next(sums) for gradient in gradients]


def rescale_by_weight(loss: Any, weights: Any) -> Any:
    """Scales a weighted mean so that its mean over devices equals the mean over the whole batch.

    `loss * (sum of weights here) * (number of devices) / (sum of weights everywhere)`: a device
    whose rows have more masked tokens, or less padding, counts more, as in a batch on one device.

    Args:
        loss: float scalar tensor, the mean over this device's weights.
        weights: tensor, or `None` if their sums are equal on all devices.
    """
    if weights is None or _BACKEND == "jax":
        return loss
    ops = keras.ops
    here = ops.sum(ops.cast(weights, "float32"))
    if _BACKEND == "torch":
        import torch

        count = _torch_processes()
        if count == 1 or here.device.type == "meta":  # Keras infers shapes.
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
    """Adds up the counts of PyTorch's processes in place; other backends have a single count."""
    if _torch_processes() > 1:
        import torch

        for variable in variables:
            torch.distributed.all_reduce(variable.value.detach())
