"""transformers trained through torch.compile."""

import functools

from sides import hugging_face

fine_tuning = functools.partial(hugging_face.fine_tuning, compiled=True)
pretraining = functools.partial(hugging_face.pretraining, compiled=True)
