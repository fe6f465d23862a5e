"""The parameters of functions, and constructors that keep their arguments."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from bert_keras.migration_hints import renamed_argument


def parameters_of(function: Callable[..., Any]) -> tuple[dict[str, inspect.Parameter], bool]:
    """Returns the parameters that a function names, without `self`, and whether it takes others."""
    # Unknown keywords are refused before any compute, and `from_preset` tells the arguments of a
    # task from those of its preprocessor: both must know what a function takes.
    named, takes_others = {}, False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_others = True
        elif name != "self" and parameter.kind is not parameter.VAR_POSITIONAL:
            named[name] = parameter
    return named, takes_others


def check_arguments(
    names: Iterable[str], function: Callable[..., Any], further: Iterable[str] = ()
) -> None:
    """Raises `TypeError` for a name that is not an argument of the function, or a further one."""
    known = [*dict.fromkeys([*further, *parameters_of(function)[0]])]
    for name in names:
        if name not in known:
            raise TypeError(
                f"`{function.__name__}` has no argument {name!r}.{renamed_argument(name)} It takes "
                f"{known}."
            )


class KeepsArguments:
    """The first base of a class whose constructors set their arguments as attributes of that name.

    They do so before anything else. Arguments that are left out have their defaults; those of
    `**kwargs` are not set. The attributes are the configuration that `get_config` returns.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "__init__" in vars(cls):
            cls.__init__ = _keeping(cls.__init__)
        super().__init_subclass__(**kwargs)


def _keeping(init):
    parameters, _ = parameters_of(init)
    defaults = {name: p.default for name, p in parameters.items() if p.default is not p.empty}

    @functools.wraps(init)
    def keeping(self, *args, **kwargs):
        by_name = {name: value for name, value in kwargs.items() if name in parameters}
        # Not by `setattr`, which Keras allows only after its own constructor.
        vars(self).update(defaults | dict(zip(parameters, args, strict=False)) | by_name)
        init(self, *args, **kwargs)

    return with_signature(keeping, init)


def with_signature(wrapper, init):
    """Returns the wrapper of a constructor with its signature; Keras does not unwrap functions."""
    wrapper.__signature__ = inspect.signature(init)
    return wrapper
