"""Numba's view of our values: trees by address, pointers to kernels, and how a kind becomes a Numba type."""

from __future__ import annotations

import hashlib
import importlib
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr, infer_global, make_intrinsic_template
from numba.extending import models, register_model
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

from thalweg._kernels import handle as handles
from thalweg._kernels import pointers
from thalweg._kernels.kinds import CLASSES, numbers, split

WORD = 8
I64, I8, VOID = ir.IntType(64), ir.IntType(8), ir.IntType(8).as_pointer()
SIMPLE = {"f8": types.float64, "i8": types.int64, "b1": types.boolean, "none": types.none}


class Tree(types.Type):  # type: ignore[misc]
    """A part inside a kernel: the address of its words."""

    def __init__(self, kind: str) -> None:
        name, _, rest = kind.partition("(")
        self.kind = kind
        self.kinds = split(rest[:-1])
        self.instance_class = _class(name)
        self.fields: tuple[str, ...] = getattr(self.instance_class, "_fields", ())
        digest = hashlib.blake2b(kind.encode(), digest_size=8).hexdigest()
        super().__init__(f"Tree_{name.rpartition(':')[2].replace('.', '_')}_{digest}")


class AnyTree(types.Type):  # type: ignore[misc]
    """The address of an opaque tree: it can only be passed on to a kernel that knows it."""


class PointerType(types.Type):  # type: ignore[misc]
    """The address of a kernel: it knows the signature."""

    def __init__(self, kind: str) -> None:
        result, _, rest = kind[1:].partition("(")
        self.returns, self.takes = typed(result), tuple(map(typed, split(rest[:-1])))
        super().__init__(f"Pointer_{kind}")


register_model(Tree)(models.OpaqueModel)
register_model(AnyTree)(models.OpaqueModel)


@register_model(PointerType)
class _PointerModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: PointerType) -> None:
        super().__init__(manager, kind, I64)


ANY = AnyTree("AnyTree")


def _class(name: str) -> Any:
    """The class of tuples that a kind names: one that was seen in this process, or an importable one."""
    if not name:
        return None
    if name not in CLASSES:
        module, _, path = name.partition(":")
        return attrgetter(path)(importlib.import_module(module))
    return CLASSES[name]


@cache
def typed(kind: str) -> Any:
    """The Numba type of a kind, as a kernel sees it."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    if kind == "any":
        return ANY
    if kind.startswith("*"):
        return Tree(kind[1:])
    if kind.startswith("@"):
        return PointerType(kind)
    if kind.startswith("("):
        return types.Tuple([typed(item) for item in split(kind[1:-1])])
    if kind.endswith(")"):
        return Tree(kind)
    dtype, _, rest = kind.partition("[")
    ndim, _, marks = rest.partition("]")
    return types.Array(from_dtype(np.dtype(dtype)), int(ndim), "A" if "A" in marks else "C", readonly="r" in marks)


# ------------------------------------------------------------------------------------------- from words to values


def _array(context: Any, builder: Any, kind: Any, words: list[Any]) -> Any:
    """An array from its address, shape and, where it is strided, strides."""
    array = context.make_array(kind)(context, builder)
    size = ir.Constant(I64, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    shape, strides, step = words[1 : 1 + kind.ndim], words[1 + kind.ndim :], size
    if kind.layout == "C":
        for length in reversed(shape):
            strides.insert(0, step)
            step = builder.mul(step, length, flags=["nsw"])
    populate_array(array, data=words[0], shape=shape, strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()


def word_types(context: Any, kind: str) -> list[Any]:
    """The LLVM types of the words of a value that is no tuple."""
    if kind == "none":
        return []
    if kind == "f8":
        return [ir.DoubleType()]
    if kind[0] == "*" or kind == "any":
        return [VOID]
    if "[" in kind and kind[0] not in "*@":
        return [context.get_data_type(typed(kind).dtype).as_pointer(), *[I64] * (numbers(kind) - 1)]
    return [I64]


def value_of(context: Any, builder: Any, kind: str, words: list[Any]) -> Any:
    """The value of a kind that is no tuple, from its words."""
    if kind == "none":
        return context.get_dummy_value()
    if kind == "b1":
        return builder.icmp_signed("!=", words[0], ir.Constant(I64, 0))
    if "[" in kind and kind[0] not in "*@":
        return _array(context, builder, typed(kind), words)
    return words[0]


def unflatten(context: Any, builder: Any, kind: str, base: Any, at: int) -> Any:
    """The value of a kind whose words begin `at` words after the address `base`."""
    if kind.endswith(")") and kind[0] not in "*@":
        if kind.startswith("("):
            values = []
            for item in split(kind[1:-1]):
                values.append(unflatten(context, builder, item, base, at))
                at += numbers(item)
            return context.make_tuple(builder, typed(kind), values)
        return builder.gep(base, [ir.Constant(I64, at * WORD)])
    words = []
    for offset, form in enumerate(word_types(context, kind)):
        place = builder.gep(base, [ir.Constant(I64, (at + offset) * WORD)])
        word = builder.load(builder.bitcast(place, form.as_pointer()))
        word.set_metadata("invariant.load", builder.module.add_metadata([]))  # rows of words never change
        words.append(word)
    return value_of(context, builder, kind, words)


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = Tree

    def generic_resolve(self, tree: Any, name: str) -> Any:
        return typed(tree.kinds[tree.fields.index(name)]) if name in tree.fields else None


@lower_getattr_generic(Tree)  # type: ignore[untyped-decorator]
def _get(context: Any, builder: Any, tree: Any, value: Any, name: str) -> Any:
    index = tree.fields.index(name)
    return unflatten(context, builder, tree.kinds[index], value, sum(map(numbers, tree.kinds[:index])))


# ------------------------------------------------------------------------------------------- functions of trees


def _stands_for(function: Any) -> Any:
    """Decorator: inside kernels an intrinsic takes the place of a function of Python."""

    def keep(definition: Any) -> Any:
        infer_global(function, types.Function(make_intrinsic_template(function, definition, function.__name__)))
        return definition

    return keep


@_stands_for(handles.parts)  # type: ignore[untyped-decorator]
def parts(typing: Any, handle: Any) -> Any:
    """The tree of a handle: the same address, or a tuple of its parts."""
    shown = typed(handle.kind)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return unflatten(context, builder, handle.kind, args[0], 0)

    return shown(handle), generate


@_stands_for(pointers.call)  # type: ignore[untyped-decorator]
def call(typing: Any, pointer: Any, *arguments: Any) -> Any:
    """The result of the kernel at a pointer, by the convention of `thalweg._compiler.emit`."""
    given = arguments[0] if isinstance(arguments[0], types.StarArgTuple) else types.StarArgTuple(arguments)

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        from thalweg._compiler.emit import call_direct

        passed = cgutils.unpack_tuple(builder, values[1])
        return call_direct(context, builder, pointer, values[0], list(zip(given.types, passed, strict=True)))

    return pointer.returns(pointer, given), generate
