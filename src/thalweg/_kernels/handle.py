"""The door between Python and compiled code: a tree of parts handed over once, then one object a call.

A learner's state and settings are NamedTuples of arrays, one in the other. Taking 30 arrays apart costs 2 to 5 us a
call; `bind` does it once and gives a `Handle`, which costs 0.8 us whatever is in it. `parts` opens it inside a kernel.

The arrays inside are borrowed: kernels do not count references to them, which with so many arrays was a third of the
time of a small round. That is safe because the handle holds a reference to each, and kernels return numbers only.
"""

from typing import Any

from numba import config, types
from numba.core import cgutils
from numba.experimental import structref
from numba.experimental.structref import _Utils
from numba.extending import NativeValue, intrinsic, models, register_model, typeof_impl, unbox

from thalweg._kernels.jit import kernel

__all__ = ["ANY", "Closed", "Handle", "bind", "borrowed", "parts"]


@structref.register
class _HandleType(types.StructRef):  # type: ignore[misc]
    """Numba's type of a handle: its one field, `tree`, has the type of the parts."""


class Handle(structref.StructRefProxy):  # type: ignore[misc]
    """Parts that were handed over to compiled code."""

    def __new__(cls, tree: Any) -> "Handle":
        return structref.StructRefProxy.__new__(cls, tree)


structref.define_proxy(Handle, _HandleType, ["tree"])


class _Open:
    """What a handle is where nothing is compiled (NUMBA_DISABLE_JIT)."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree


@kernel
def _bind(tree: Any) -> Any:
    return Handle(tree)


def bind(tree: Any) -> Handle:
    """Hand a tree of parts over to compiled code. The arrays stay the same arrays; the tree itself cannot change."""
    return _Open(tree) if config.DISABLE_JIT else _bind(tree)  # type: ignore[return-value]


class _AnyType(types.Opaque):  # type: ignore[misc]
    """Numba's type of a handle of which nothing is known: it can only be passed on, to a kernel that knows it."""


ANY = _AnyType("AnyHandle")
register_model(_AnyType)(models.OpaqueModel)


class Closed:
    """A handle for kernels that do not know what is in it; from Python it is the handle."""

    def __new__(cls, handle: Any) -> Any:
        """Where nothing is compiled there is nothing to hide."""
        return handle if config.DISABLE_JIT else super().__new__(cls)

    def __init__(self, handle: Handle) -> None:
        self._meminfo = handle._meminfo  # and so what it points to lives as long as this


@typeof_impl.register(Closed)  # type: ignore[untyped-decorator]
@typeof_impl.register(_Open)  # type: ignore[untyped-decorator]
def _typeof(_: Any, __: Any) -> _AnyType:
    return ANY


@unbox(_AnyType)  # type: ignore[untyped-decorator]
def _unbox(_: _AnyType, closed: Any, c: Any) -> NativeValue:
    kind = types.MemInfoPointer(types.voidptr)
    owner = c.pyapi.object_getattr_string(closed, "_meminfo")
    pointer = c.unbox(kind, owner).value
    c.context.nrt.decref(c.builder, kind, pointer)  # Python owns it
    c.pyapi.decref(owner)
    return NativeValue(pointer)


def _borrow(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The same value without owners: nothing is counted when it is copied."""
    if isinstance(kind, types.BaseTuple):
        borrowed = [
            _borrow(context, builder, item, builder.extract_value(value, i)) for i, item in enumerate(kind.types)
        ]
        return context.make_tuple(builder, kind, borrowed)
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    return value


if config.DISABLE_JIT:

    def parts(handle: Any) -> Any:
        """The tree of a handle."""
        return handle.tree

    def borrowed(tree: Any) -> Any:
        """The tree itself."""
        return tree

else:

    @intrinsic  # type: ignore[untyped-decorator]
    def parts(typing: Any, handle: Any) -> Any:
        """Inside a kernel: the tree of a handle, its arrays borrowed."""
        tree = handle.field_dict["tree"]

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = _Utils(context, builder, signature.args[0]).get_data_struct(args[0])
            return _borrow(context, builder, tree, data.tree)

        return tree(handle), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def borrowed(typing: Any, tree: Any) -> Any:
        """Inside a kernel: a tree that was handed over as it is, its arrays borrowed likewise."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _borrow(context, builder, signature.args[0], args[0])

        return tree(tree), generate
