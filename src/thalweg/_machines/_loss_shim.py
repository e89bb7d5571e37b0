from thalweg._kernels import losses as _k
from thalweg._kernels.jit import inlined
@inlined
def value(code, z, b, par):
    return _k.value(code, z, b)
@inlined
def slope(code, z, b, par):
    return _k.slope(code, z, b)
