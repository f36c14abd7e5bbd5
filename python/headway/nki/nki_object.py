"""NKIObject: base class of the objects that kernels pass around."""

from __future__ import annotations

import copy
import dataclasses
import typing


def _is_attribute(cls: type, name: str) -> bool:
    """Whether a class has ``name`` as a value: a field without an annotation."""
    return hasattr(cls, name) and not callable(getattr(cls, name)) and not name.startswith("__")


class _Fields(type):
    """NKI's front end takes fields that a call leaves out as absent, and values of the class as fields, of
    dataclasses too, where Python's would refuse the call.
    """

    def __call__(cls, *args, **kwargs):
        if dataclasses.is_dataclass(cls) and "__init__" in cls.__dict__:
            given = [field for field in dataclasses.fields(cls) if field.init]
            code = cls.__init__.__code__
            if code.co_varnames[1 : code.co_argcount] != tuple(field.name for field in given):
                given = []  # a constructor of its own
            for field in given[len(args) :]:
                if (
                    field.name not in kwargs
                    and field.default is dataclasses.MISSING
                    and field.default_factory is dataclasses.MISSING
                ):
                    kwargs[field.name] = None
            if given or not code.co_argcount > 1:
                known = {field.name for field in given}
                others = {k: kwargs.pop(k) for k in list(kwargs) if k not in known and _is_attribute(cls, k)}
                made = super().__call__(*args, **kwargs)
                for name, value in others.items():
                    object.__setattr__(made, name, value)
                return made
        return super().__call__(*args, **kwargs)


class NKIObject(metaclass=_Fields):
    """Like a dataclass: fields are the class's annotations, in order, base classes first; the constructor
    takes them by position or keyword, with class attributes as defaults, and then calls ``__post_init__``.
    Fields that are left out are absent. A class may have its own ``__init__`` instead, or be a dataclass.
    """

    def __init__(self, *args, **kwargs):
        fields = self._fields_of(type(self))
        if len(args) > len(fields):
            raise TypeError(f"{type(self).__name__} takes {len(fields)} fields, {len(args)} were given")
        values = dict(zip(fields, args))
        for name, value in kwargs.items():
            if name not in fields and not _is_attribute(type(self), name):
                raise TypeError(f"{type(self).__name__} has no field '{name}'; there are {', '.join(fields)}")
            if name in values:
                raise TypeError(f"{type(self).__name__}: field '{name}' was given twice")
            values[name] = value
        for name in [*fields, *(name for name in values if name not in fields)]:
            if name in values:
                setattr(self, name, values[name])
            elif hasattr(type(self), name):
                default = getattr(type(self), name)
                # Each object has lists of its own.
                setattr(self, name, copy.copy(default) if type(default) in (list, dict, set) else default)
        post = getattr(self, "__post_init__", None)
        if post is not None:
            post()

    @staticmethod
    def _fields_of(cls: type) -> list[str]:
        fields: list[str] = []
        for base in reversed(cls.__mro__):
            for name, annotation in base.__dict__.get("__annotations__", {}).items():
                of_class = (
                    typing.get_origin(annotation) is typing.ClassVar
                    or annotation is typing.ClassVar
                    or (isinstance(annotation, str) and "ClassVar" in annotation.split("[")[0])
                )
                if name not in fields and not of_class:
                    fields.append(name)
        return fields

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({inside})"
