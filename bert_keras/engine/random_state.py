"""Where a model's random numbers stand: dropout's seeds and, on PyTorch, the global generators."""

import base64
import functools

import keras
import numpy as np

from bert_keras import distribution


def as_json(model):
    """Returns the state of a model's random numbers as a JSON value, for `GoOn`."""
    return {
        "backend": keras.backend.backend(),
        "seeds": [keras.ops.convert_to_numpy(seed).tolist() for seed in _seeds(model)],
        "generators": {
            name: base64.b64encode(get().numpy().tobytes()).decode("ascii")
            for name, (get, _) in _generators().items()
        },
    }


class GoOn(keras.callbacks.Callback):
    """Lets the random numbers of a run go on from where `as_json` found them.

    So that a model which was saved between two epochs, and loaded, draws the masks that it would
    have drawn. Another backend draws others anyway, so there nothing is done.

    Args:
        state: JSON value, from `as_json`.
        has_one_loader: bool, whether all epochs read one loader, as with `steps_per_epoch`, and not
            each its own. Torch's draws a number when it is made, which in the first case the run
            that was saved had done before.
    """

    def __init__(self, state, has_one_loader=False):
        super().__init__()
        self._state = state if state["backend"] == keras.backend.backend() else None
        self._has_one_loader = has_one_loader

    def on_epoch_begin(self, epoch, logs=None):
        # Not before: Keras may run the model once for its shapes when `fit` begins.
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
        """Sets the backend's generators, the first time that it is called."""
        state, self._state = self._state, None
        for name, (_, set_state) in _generators().items() if state is not None else ():
            if name in state["generators"]:
                values = np.frombuffer(base64.b64decode(state["generators"][name]), "uint8")
                set_state(keras.ops.convert_to_tensor(values.copy()).cpu())


class OfEachProcess(keras.callbacks.Callback):
    """Lets each of PyTorch's processes draw dropout of its own, from one state.

    At every epoch's beginning all take up the random numbers of the first, each so many further as
    its number says: what a checkpoint has of the first process is then the state of all.
    """

    def on_train_batch_begin(self, batch, logs=None):
        if batch or keras.backend.backend() != "torch":
            return
        import torch

        seeds, number = _seeds(self.model), distribution.process()[0]
        state = [keras.ops.convert_to_numpy(seed).tolist() for seed in seeds]
        *state, drawn = distribution.of_first([*state, torch.randint(2**31, ()).item()])
        if number:
            torch.manual_seed(drawn + number)
            for seed, (first, count) in zip(seeds, state, strict=True):
                seed.assign(np.array([(first + number) % 2**32, count], dtype="uint32"))


def _seeds(model):
    return [variable for variable in model.variables if "seed_generator_state" in variable.path]


def _generators():
    """Returns what Keras leaves to the backend: `(get, set)` of a state by name; only PyTorch's."""
    if keras.backend.backend() != "torch":
        return {}
    import torch

    found = {"cpu": (torch.get_rng_state, torch.set_rng_state)}
    for i in range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0):
        found[f"cuda_{i}"] = (
            functools.partial(torch.cuda.get_rng_state, i),
            functools.partial(torch.cuda.set_rng_state, device=i),
        )
    return found
