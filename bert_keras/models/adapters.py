"""LoRA adapters in a backbone's encoder: which projections have one, and with which settings."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import keras

from bert_keras.checks import check_int, check_number
from bert_keras.engine import variable_paths
from bert_keras.engine.variable_paths import relative_path
from bert_keras.types import Projection

DEFAULT_TARGETS = ("query", "value")


class LoraMixin:
    """A backbone's methods for LoRA adapters, which are part of it and of its weights.

    `adaptable`, a mapping from names to lists of dense layers, one per block, says which layers can
    have one. A block that several layers share counts once, and has one adapter for all of them.

    Attributes:
        lora: dict with the settings `lora_rank`, `lora_alpha`, `lora_targets` and `lora_layers`, as
            JSON values, or `None` without adapters.
    """

    lora = None
    # A family may replace `DEFAULT_TARGETS`.
    default_targets = DEFAULT_TARGETS
    # Paths of the weights that the adapters froze.
    _frozen_by_adapters = ()

    def add_adapters(
        self,
        rank: int,
        alpha: float | None = None,
        targets: Sequence[Projection] = DEFAULT_TARGETS,
        layers: Iterable[int] | None = None,
    ) -> None:
        """Adds adapters to projections of the encoder's blocks, and freezes all other weights.

        Args:
            rank: int, from 1 to `hidden_dim`.
            alpha: float above 0; adapters are multiplied by `alpha / rank`. `None` takes `rank`.
            targets: names in `adaptable`. The default is queries and values; a family that computes
                both in one layer adapts that layer.
            layers: numbers of encoder blocks, such as `range(6, 12)`, or `None` for all.

        Raises:
            ValueError: a setting is out of range, or there are adapters with other settings.
        """
        settings = self._checked_settings(rank, alpha, targets, layers)
        if self.lora == settings:
            return
        if self.lora is not None:
            raise ValueError(
                "A backbone has one set of adapters, which its tasks share. Received: the settings "
                f"{settings}, for a backbone that has {dict(self.lora)}. Merge those first, or use "
                "another backbone."
            )
        frozen = [weight for weight in self.weights if weight.trainable]
        for projection in self._projections(settings):
            projection.add_adapter(rank, settings["lora_alpha"])
        for weight in frozen:
            weight.trainable = False
        self._frozen_by_adapters = tuple(map(relative_path, frozen))
        self.lora = settings
        variable_paths.changed()

    def _checked_settings(self, rank, alpha, targets, layers):
        check_int("lora_rank", rank, 1, self.hidden_dim, "4 to 16 are usual.")
        alpha = rank if alpha is None else alpha
        targets = self.default_targets if targets == DEFAULT_TARGETS else targets
        check_number("lora_alpha", alpha, above=0, advice="None takes `lora_rank`.")
        if layers is not None:
            last = self.num_blocks - 1
            rule = f"different encoder layers from 0 to {last}, such as [{last}], or None for all"
            layers = _chosen("lora_layers", layers, range(last + 1), rule)
        names = list(self.adaptable)
        rule = f"a list of different names out of {names}"
        return {
            "lora_rank": int(rank),
            "lora_alpha": float(alpha),
            "lora_targets": _chosen("lora_targets", targets, names, rule),
            "lora_layers": layers,
        }

    def _projections(self, settings):
        layers, adaptable = settings["lora_layers"], self.adaptable
        return [
            adaptable[target][i]
            for i in (range(self.num_blocks) if layers is None else layers)
            for target in settings["lora_targets"]
        ]

    @property
    def adapter_weights(self) -> list[keras.Variable]:
        """Weights of the adapters, two for each adapted projection."""
        if self.lora is None:
            return []
        return [w for layer in self._projections(self.lora) for w in (layer.lora_a, layer.lora_b)]

    @property
    def frozen_by_adapters(self) -> list[keras.Variable]:
        """Weights that the adapters froze."""
        paths = set(self._frozen_by_adapters)
        return [weight for weight in self.weights if relative_path(weight) in paths]

    def merge_adapters(self) -> None:
        """Merges the adapters into the kernels, and unfreezes the weights that they froze.

        Raises:
            ValueError: there are none.
        """
        if self.lora is None:
            raise ValueError("Only adapters that were added can be merged. This backbone has none.")
        for projection in self._projections(self.lora):
            projection.merge_adapter()
        for weight in self.frozen_by_adapters:
            weight.trainable = True
        self._frozen_by_adapters, self.lora = (), None
        variable_paths.changed()

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Like `keras.Model.save`.

        Raises:
            ValueError: there are adapters, whose settings only a task's config holds.
        """
        if self.lora is not None:
            raise ValueError(
                "A backbone is saved without adapters. This one has some: save the task, or "
                "`backbone.without_adapters()`."
            )
        super().save(*args, **kwargs)

    def without_adapters(self) -> Self:
        """Returns a copy with the adapters merged, or itself without any.

        The copy computes the same, and this backbone does not change.
        """
        if self.lora is None:
            return self
        plain = type(self).from_config(self.get_config())
        weights = {relative_path(weight): weight for weight in self.weights}
        for weight in plain.weights:
            weight.assign(keras.ops.convert_to_numpy(weights[relative_path(weight)]))
        pairs = zip(self._projections(self.lora), plain._projections(self.lora), strict=True)
        for adapted, merged in pairs:
            merged.kernel.assign(adapted.merged_kernel())
        return plain


def _chosen(name, chosen, allowed, rule):
    """Returns what is chosen, in the order of `allowed`, so that equal settings compare equal."""
    values = [*chosen] if isinstance(chosen, Iterable) and not isinstance(chosen, str) else []
    found = [value for value in allowed if value in values]
    if not values or len(found) < len(values):
        raise ValueError(f"`{name}` must be {rule}. Received: {chosen!r}.")
    return found
