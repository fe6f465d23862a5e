"""The names of a classifier's labels."""


def check_label_names(label_names, num_classes):
    """Raises `ValueError` unless there are as many different names as classes, or `None`.

    Args:
        label_names: sequence of str, or `None`.
        num_classes: int.
    """
    if label_names is None:
        return
    is_str = isinstance(label_names, str)
    if is_str or not all(isinstance(name, str) for name in label_names):
        raise ValueError(
            "`label_names` must be a list of str. Received: "
            f"{label_names if is_str else list(label_names)!r}. Classes without names are numbers: "
            "label_names=None."
        )
    if len(label_names) != num_classes or len(set(label_names)) != num_classes:
        raise ValueError(
            f"`label_names` must be num_classes={num_classes} different names. Received: "
            f"{list(label_names)}."
        )
