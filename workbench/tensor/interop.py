"""Memory that tensors share with other libraries, without a copy: DLPack, numpy, pointers.

A write to a tensor on shared memory is made there, so that the other library sees it. What the
other library writes is seen by tensors that are computed later; values computed before stay.
Source of the protocol: DLPack (dmlc), and its Python form in the array API standard.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
from itertools import chain
from typing import Any, Self

import numpy as np

from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import type_name
from workbench.execution.buffers import buffer_on, copied, memory_of, sharing
from workbench.execution.memory_plan import value_in_memory
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import addressable
from workbench.ir.schedule.schedule import base
from workbench.tensor.base import Base, canonical, tensors_alive
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.arguments import device_error, dtype_error, flag, short, whole
from workbench.tensor.operands.axes import sizes
from workbench.tensor.operands.literal import as_dtype

Array = np.ndarray[Any, Any]
_CPU = 1
"""DLPack's number of the processor's memory."""


class Interop(Base):
    """from_numpy, from_dlpack, from_blob, data, and DLPack's two methods."""

    __slots__ = ()

    @classmethod
    def from_numpy(
        cls,
        array: Array,
        share: bool = False,
        device: str | None = None,
        *,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return a tensor of the elements of `array`; with `share` on its memory, not a copy.

        Errors: DTypeError for another value; with `share` DeviceError for an array that is empty,
        not contiguous or not aligned, or for a device that has other memory.
        """
        if not isinstance(array, np.ndarray):
            raise dtype_error(
                f"from_numpy does not take {short(array)}",
                f"it must be a numpy array, and this is {type_name(type(array))}",
                f"Tensor({short(array)})",
            )
        if not flag(share, "from_numpy: share"):
            return cls(array, device=device)._leaf_if(requires_grad)
        if not array.flags.c_contiguous:
            raise device_error(
                "cannot share the memory of an array",
                "its elements do not lie there in order",
                "np.ascontiguousarray(array), or share=False",
            )
        dtype = cls(array[..., :0] if array.ndim else array).dtype
        return cls._on_memory(
            array.reshape(-1).view(np.uint8), dtype, array.shape, device
        )._leaf_if(requires_grad)

    @classmethod
    def from_dlpack(cls, x: Any, *, requires_grad: bool | None = None) -> Self:
        """Return a tensor on the memory of a tensor of another library: PyTorch, JAX, numpy. Axes
        may be in any order. Elements with gaps between them, repeated or in reverse order, are
        copied: then neither side sees what is written to the other.

        Errors: DTypeError for a value without DLPack, DeviceError for memory that is not the
        processor's.
        """
        if not hasattr(x, "__dlpack__") or isinstance(x, type):
            raise dtype_error(
                f"from_dlpack: {short(x)} does not have __dlpack__",
                f"it must be a tensor or an array, and this is {type_name(type(x))}",
                f"Tensor({short(x)})",
            )
        try:
            array = np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise device_error(
                f"cannot share the memory of {type_name(type(x))}", str(error), "Tensor(x.numpy())"
            ) from None
        order = sorted(range(array.ndim), key=lambda a: -array.strides[a])
        dense = array.transpose(order)
        if not (dense.flags.c_contiguous and array.size):
            return cls(array)._leaf_if(requires_grad)
        shared = cls.from_numpy(dense, share=True)
        if order == sorted(order):
            return shared._leaf_if(requires_grad)
        back = tuple(order.index(axis) for axis in range(array.ndim))
        return shared._view(UOp(Ops.PERMUTE, shared.dtype, (shared.uop,), back))._leaf_if(
            requires_grad
        )

    @classmethod
    def from_blob(
        cls,
        ptr: int,
        shape: Any,
        dtype: DType | str | None = None,
        device: str | None = None,
        *,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return a tensor on memory of this process at address `ptr`, which the caller keeps alive.

        Dtypes: None is the default float. Errors: DeviceError for a device that has other memory,
        for an address that is 0 or not aligned, and for memory that cannot be read.
        """
        address, kind = (
            whole(ptr, "from_blob: ptr"),
            as_dtype(dtypes.default_float if dtype is None else dtype),
        )
        extents = sizes((shape,), "from_blob")
        addressable(extents)
        nbytes = math.prod(extents) * kind.itemsize
        if not 0 < address < 1 << 63 or address % kind.itemsize:
            raise device_error(
                f"cannot make a tensor of {kind} at address {short(address)}",
                f"it must be a multiple of {kind.itemsize} above 0, below 2**63",
                "array.ctypes.data, the address of a numpy array",
            )
        if not nbytes:
            return cls(np.empty(extents, kind.numpy), device=device)._leaf_if(requires_grad)
        data = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
        data.flags.writeable = _is_writable(data)
        return cls._on_memory(data, kind, extents, device)._leaf_if(requires_grad)

    def data(self) -> memoryview:
        """Return the elements for reading, computed if necessary; they are not copied if this
        process can read the memory.

        Dtypes: bytes for bfloat16 and floats of 8 bits, which Python's buffers lack.
        """
        array = self._memory_array()
        if array is None:
            array = self._values()
        if not self.dtype.in_numpy:
            array = array.reshape(array.shape or (1,)).view(np.uint8)
        array.flags.writeable = False
        return memoryview(array)  # type: ignore[arg-type]

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a capsule of the elements in memory, computed if necessary, for another library.
        Later writes to this tensor are made in that memory.

        Errors: BufferError for memory that is not the processor's, or dtypes that numpy lacks.
        """
        if not self.dtype.in_numpy:
            raise BufferError(f"numpy, which makes the capsule, has no {self.dtype}")
        if dl_device is not None and (int(dl_device[0]), dl_device[1]) != (_CPU, 0):
            raise BufferError("the memory is the processor's: dl_device must be (1, 0)")
        array = None if copy else self._memory_array()
        if array is not None:
            self._share_memory()
            array = self._memory_array()
        elif copy is False:
            raise BufferError(f"the memory of {self.device} cannot be shared")
        if array is None:
            array = self._values()
        return array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0

    # helpers

    @classmethod
    def _on_memory(
        cls, data: Array, dtype: DType, shape: tuple[int, ...], device: str | None
    ) -> Self:
        name = Device.DEFAULT if device is None else canonical(device)
        memory = Buffer.over(name, dtype, data)
        if memory is None:
            raise device_error(
                f"cannot use memory of this process for a tensor on {name}",
                "there are no elements, they are not aligned, or the device has other memory",
                "Tensor(array), which copies",
            )
        tensor = cls._of_value(buffer_on(memory, shape))
        if data.flags.writeable:
            tensor._share(tensor)
            assert tensor._memory is not None
            tensor._memory.share(memory)
        return tensor

    def _memory_array(self) -> Array | None:
        """Return the memory of the value as an array, which keeps it alive; None for a constant,
        for memory that this process does not see, and for a library's read-only memory."""
        if self._memory is not None:  # a view is shared in the memory of the whole
            whole = self._with(self._memory.value)
            whole._memory, whole._version = self._memory, self._memory.value
            whole.realize()
            if value_in_memory(self._memory.value).op is not Ops.BUFFER:
                return None
        node = base(self._result())
        if node.op is not Ops.BUFFER:
            return None
        memory = memory_of(node)
        if not memory.address or (memory.is_adopted and not memory.owner.is_shared):
            return None
        return memory.array.reshape(self.shape)

    def _share_memory(self) -> None:
        """Share this tensor's memory with another library: later writes are made there. Values of
        other tensors must not change with it: if some are there, this tensor moves to a copy."""
        self._share(self)
        memory = self._memory
        assert memory is not None
        if memory.shared is not None:
            return
        under = value_in_memory(memory.value)
        names = sharing(under)
        if base(memory.value) is under and any(
            t._memory is not memory and value_in_memory(t.uop) in names for t in tensors_alive()
        ):
            memory.renew(reshaped(copied(under), memory.value.shape))
            under = base(memory.value)
        memory.share(memory_of(under))


def _is_writable(data: Array) -> bool:
    """Whether memory can be written. A byte of each page is sent to the system and back, which
    returns an error where an access of the processor would end the process.

    Errors: DeviceError for memory that cannot be read.
    """
    reader, writer = os.pipe()
    is_writable = True
    try:
        for place in chain(range(0, data.size, mmap.PAGESIZE), (data.size - 1,)):
            byte = memoryview(data[place : place + 1])  # type: ignore[arg-type]
            os.write(writer, byte)
            try:
                os.readv(reader, [byte])
            except OSError:
                os.read(reader, 1)
                is_writable = False
    except OSError:
        raise device_error(
            "cannot make a tensor on memory at that address",
            f"{data.size:,} bytes from there on cannot be read",
            "the address of memory of this process that is large enough",
        ) from None
    finally:
        os.close(reader)
        os.close(writer)
    return is_writable
