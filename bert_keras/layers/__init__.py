"""The mathematics. Layers whose arguments are plain values leave `get_config` to Keras."""
