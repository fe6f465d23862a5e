"""transformers trained with the kernels of the package flash_attn."""

import functools

from sides import hugging_face

fine_tuning = functools.partial(hugging_face.fine_tuning, attention="flash_attention_2")
pretraining = functools.partial(hugging_face.pretraining, attention="flash_attention_2")
