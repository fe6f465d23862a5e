"""The state of a model's random numbers: dropout's seeds and PyTorch's global generators.

Why: on PyTorch, Keras's dropout draws from the global generator, which Keras does not save. A run
that continues from a file would draw other masks than the run that was saved.

Remove when `test_keras_s_dropout_reads_pytorch_s_global_generator` fails.
"""

import base64
import functools

import keras
import numpy as np

from bert_keras import distribution


def as_json(model):
    """Returns the state of a model's random numbers as a JSON value, for `RestoreState`."""
    return {
        "backend": keras.backend.backend(),
        "seeds": [keras.ops.convert_to_numpy(seed).tolist() for seed in _seeds(model)],
        "generators": {
            name: base64.b64encode(get().numpy().tobytes()).decode("ascii")
            for name, (get, _) in _generators().items()
        },
    }


class RestoreState(keras.callbacks.Callback):
    """Restores the random numbers of a run to a state that `as_json` returned.

    A model that was saved between two epochs, and loaded, then draws the masks that it would have
    drawn. Another backend draws other masks anyway, so there the callback does nothing.

    Args:
        state: JSON value, from `as_json`.
        has_one_loader: bool, whether all epochs read one loader, as with `steps_per_epoch`, rather
            than one each. PyTorch's loader draws a number when it is made, which the saved run, if
            it has one loader, did before it was saved.
    """

    def __init__(self, state, has_one_loader=False):
        super().__init__()
        self._state = state if state["backend"] == keras.backend.backend() else None
        self._has_one_loader = has_one_loader

    def on_epoch_begin(self, epoch, logs=None):
        # Not earlier: when `fit` begins, Keras may run the model once for its shapes.
        seeds = _seeds(self.model)
        if self._state is None or len(seeds) != len(self._state["seeds"]):
            self._state = None
            return
        for seed, value in zip(seeds, self._state["seeds"], strict=True):
            seed.assign(np.array(value, dtype="uint32"))
        if not self._has_one_loader:
            self._set_generators()

    def on_train_batch_begin(self, batch, logs=None):
        self._set_generators()

    def _set_generators(self):
        """Sets the backend's generators, on the first call."""
        state, self._state = self._state, None
        for name, (_, set_state) in _generators().items() if state is not None else ():
            if name in state["generators"]:
                values = np.frombuffer(base64.b64decode(state["generators"][name]), "uint8")
                set_state(keras.ops.convert_to_tensor(values.copy()).cpu())


class PerProcessRng(keras.callbacks.Callback):
    """Gives each of PyTorch's processes dropout masks of its own, derived from one state.

    When an epoch begins, every process takes the random state of the first one and adds its own
    number. The first process's state in a checkpoint is therefore enough to restore all of them.
    """

    def on_train_batch_begin(self, batch, logs=None):
        if batch or keras.backend.backend() != "torch":
            return
        import torch

        seeds, number = _seeds(self.model), distribution.process()[0]
        state = [keras.ops.convert_to_numpy(seed).tolist() for seed in seeds]
        *state, drawn = distribution.broadcast_from_rank0([*state, torch.randint(2**31, ()).item()])
        if number:
            torch.manual_seed(drawn + number)
            for seed, (first, count) in zip(seeds, state, strict=True):
                seed.assign(np.array([(first + number) % 2**32, count], dtype="uint32"))


def _seeds(model):
    return [variable for variable in model.variables if "seed_generator_state" in variable.path]


def _generators():
    """Returns name -> `(get, set)` of the state of each generator that Keras leaves to PyTorch."""
    if keras.backend.backend() != "torch":
        return {}
    import torch

    generators = {"cpu": (torch.get_rng_state, torch.set_rng_state)}
    for i in range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0):
        generators[f"cuda_{i}"] = (
            functools.partial(torch.cuda.get_rng_state, i),
            functools.partial(torch.cuda.set_rng_state, device=i),
        )
    return generators
