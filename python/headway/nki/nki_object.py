"""NKIObject: base class of the objects that kernels pass around."""

from __future__ import annotations


class NKIObject:
    """Like a dataclass: fields are the class's annotations, in order, base classes first; the constructor takes them by position or
    keyword, with class attributes as defaults, and then calls ``__post_init__``. A class may have its own ``__init__`` instead.
    """

    def __init__(self, *args, **kwargs):
        fields = self._fields_of(type(self))
        if len(args) > len(fields):
            raise TypeError(f"{type(self).__name__} takes {len(fields)} fields, {len(args)} were given")
        values = dict(zip(fields, args))
        for name, value in kwargs.items():
            if name not in fields:
                raise TypeError(f"{type(self).__name__} has no field '{name}'")
            if name in values:
                raise TypeError(f"{type(self).__name__}: field '{name}' was given twice")
            values[name] = value
        for name in fields:
            if name in values:
                setattr(self, name, values[name])
            elif hasattr(type(self), name):
                setattr(self, name, getattr(type(self), name))
            else:
                raise TypeError(f"{type(self).__name__}: field '{name}' is missing")
        post = getattr(self, "__post_init__", None)
        if post is not None:
            post()

    @staticmethod
    def _fields_of(cls: type) -> list[str]:
        fields: list[str] = []
        for base in reversed(cls.__mro__):
            for name in base.__dict__.get("__annotations__", {}):
                if name not in fields:
                    fields.append(name)
        return fields

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({inside})"
