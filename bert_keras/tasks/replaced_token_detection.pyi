from typing import overload

import keras

from bert_keras._types import Dtype, JudgedToken, Tensor, Texts, Verbose
from bert_keras.tasks.joint_task import JointTask
from bert_keras.tasks.masked_lm import MaskedLM
from bert_keras.tasks.replaced_token_detector import ReplacedTokenDetector

OUTPUTS: tuple[str, str]

class ReplacedTokenDetection(JointTask):
    generator: MaskedLM
    discriminator: ReplacedTokenDetector
    detection_weight: float
    seed: int | None
    seed_generator: keras.random.SeedGenerator
    def __init__(
        self,
        generator: MaskedLM,
        discriminator: ReplacedTokenDetector,
        detection_weight: float = 50.0,
        seed: int | None = None,
        name: str | None = None,
        dtype: Dtype | None = None,
        trainable: bool = True,
    ) -> None: ...
    @property
    def tasks(self) -> tuple[MaskedLM, ReplacedTokenDetector]: ...
    @overload
    def is_replaced(
        self, text: str, batch_size: int | None = None, verbose: Verbose = 0
    ) -> list[JudgedToken]: ...
    @overload
    def is_replaced(
        self, text: Texts, batch_size: int | None = None, verbose: Verbose = 0
    ) -> list[list[JudgedToken]]: ...

def put(rows: Tensor, positions: Tensor, values: Tensor) -> Tensor: ...
