"""Parameters that share a line of a docstring ("domain, horizon: as for `OGD`") have each their own type."""

import griffe


class Shared(griffe.Extension):
    """The type of a parameter comes from the signature where the docstring names none."""

    def on_object(self, *, obj, **_):  # noqa: D102
        if obj.is_function and obj.docstring is not None:
            self._mend(obj.docstring, obj)

    def on_class(self, *, cls, **_):  # noqa: D102
        if cls.docstring is not None and "__init__" in cls.members and cls.members["__init__"].is_function:
            self._mend(cls.docstring, cls.members["__init__"])

    def _mend(self, docstring, function):
        for section in docstring.parsed:
            if section.kind is griffe.DocstringSectionKind.parameters:
                for before, one in zip(section.value, section.value[1:], strict=False):
                    same = one.annotation is not None and one.description == before.description
                    if same and one.name in (known.name for known in function.parameters):
                        one.annotation = function.parameters[one.name].annotation
