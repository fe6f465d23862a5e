import keras

def layer_wise_decay(
    backbone: keras.layers.Layer, rate: float, head: float = 1.0
) -> list[tuple[str, float]]: ...
def stages_from_the_top(
    backbone: keras.layers.Layer, layers_per_stage: int = 1
) -> list[list[str]]: ...
