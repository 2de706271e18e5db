"""The NVIDIA driver, the CUDA runtime over it, and asynchronous copies.

Sections: The NVIDIA driver, through cuda-core and cuda-bindings; The CUDA runtime; Asynchronous
copies to shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from workbench.backends.compilers.child import in_child
from workbench.backends.compilers.compilers import MachineCode
from workbench.backends.compilers.refusal import errors_in, require_kernel
from workbench.backends.cuda import nvrtc, sass
from workbench.backends.cuda.cuda_machines import hardware_here, target
from workbench.backends.gpu.driver import GpuDriver, without_status
from workbench.backends.gpu.memory import AddressLaunch
from workbench.backends.memory import Buffer
from workbench.backends.native.program import AsmLine
from workbench.backends.program.text import Source
from workbench.base.installation import library
from workbench.base.interrupts import once
from workbench.base.target import Target

# --------------------------------------------------------------------------------------------------
# The NVIDIA driver, through cuda-core and cuda-bindings: the GPU, its stream, its limits.

KILO = 1e3


class CudaDriver(GpuDriver):
    """The first GPU: a cuda.core Device, and the stream of all launches and copies."""

    name = "CUDA"
    package = "cuda.core"
    absence = "no NVIDIA GPU with its driver is found"
    # CUDA Driver API, CUresult
    sticky = (
        "ILLEGAL_ADDRESS", "LAUNCH_FAILED", "LAUNCH_TIMEOUT", "MISALIGNED_ADDRESS",
        "ILLEGAL_INSTRUCTION", "ASSERT", "ECC_UNCORRECTABLE", "HARDWARE_STACK_ERROR",
        "CONTEXT_IS_DESTROYED", "DEVICE_UNAVAILABLE",
    )  # fmt: skip

    def __init__(self, gpu: Any):
        gpu.set_current()
        self.gpu = gpu
        self.stream = self.explain("the GPU cannot be used", gpu.create_stream)

    @staticmethod
    def find() -> Any | None:
        if nvrtc.toolkit() is None:
            return None
        try:
            gpus = library("cuda.core").Device.get_all_devices()
        except Exception:  # each library on the way to the driver has errors of its own
            return None
        return gpus[0] if gpus else None

    @property
    def arch(self) -> str:
        """Its architecture, for compilers: "sm_90"."""
        capability = self.gpu.compute_capability
        return f"sm_{capability.major}{capability.minor}"

    def target(self) -> Target:
        limits = self.gpu.properties
        hardware = replace(
            hardware_here(
                self.gpu.name,
                self.arch,
                units=limits.multiprocessor_count,
                clock_hz=limits.clock_rate * KILO,
                memory_bytes=self.memory_bytes,
                # two transfers per cycle
                dram=2 * limits.memory_clock_rate * KILO * limits.global_memory_bus_width / 8,
            ),
            unit_registers=limits.max_registers_per_multiprocessor,
            unit_items=limits.max_threads_per_multiprocessor,
            unit_groups=limits.max_blocks_per_multiprocessor,
            unit_shared_bytes=limits.max_shared_memory_per_multiprocessor,
            group_shared_bytes=limits.reserved_shared_memory_per_block,
        )
        grid = (limits.max_grid_dim_x, limits.max_grid_dim_y, limits.max_grid_dim_z)
        return replace(
            target(self.name, hardware, limits.l2_cache_size),
            grid_limits=grid,
            group_items=limits.max_threads_per_block,
            warp_lanes=limits.warp_size,
        )

    def allow_shared(self, kernel: Any, nbytes: int) -> None:
        """Allow launches of a kernel to give a group `nbytes` of shared memory, which may be more
        than the limit of arrays with sizes in the text."""
        bindings = library("cuda.bindings.driver")
        limit = bindings.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        gpu = bindings.CUdevice(self.gpu.device_id)
        call("KernelSetAttribute", limit, nbytes, kernel.handle, gpu)

    @property
    def memory_bytes(self) -> int:
        """The bytes of its memory, used or free."""

        def act() -> int:
            self.gpu.set_current()
            _, total = call("MemGetInfo")
            return int(total)

        return self.explain("the GPU does not report its memory", act)

    def flush(self) -> None:
        """Do nothing: a stream begins its work by itself."""

    def wait(self) -> None:
        self.explain("the GPU stopped", self.stream.sync)


def call(name: str, *arguments: Any) -> Any:
    """Call a function of cuda.bindings; return its values without its status: one, or a tuple.

    Errors: MemoryError where memory runs out; RuntimeError with the name of any other error.
    """
    function = getattr(library("cuda.bindings.driver"), f"cu{name}")
    return without_status(*function(*arguments))


# --------------------------------------------------------------------------------------------------
# The CUDA runtime: CUDA C++ to a Program, a cubin of NVRTC launched through cuda-core.


class CudaProgram:
    """A kernel in CUDA C++; it is compiled when it is first bound.

    Errors: CompileError with the line that NVRTC refuses; DeviceError where the GPU does not load
    it.
    """

    def __init__(self, source: Source):
        self.source = source

    @once
    def image(self) -> nvrtc.Image:
        """The cubin, compiled in the child process of compilers."""
        text, arch = self.source.text, CudaDriver.current().arch
        with errors_in(self.source):
            image: nvrtc.Image = in_child(nvrtc.compile_text, text, arch)
        return image

    def require_code(self) -> None:
        """Compile now. Errors: CompileError, also for a text with other kernels than its own;
        DeviceError without nvdisasm."""
        kernels = self.machine_code.kernels
        with errors_in(self.source):
            require_kernel("nvrtc", kernels, self.source)

    @once
    def kernel(self) -> Any:
        """The kernel on the GPU."""
        core, name = library("cuda.core"), self.source.name
        cubin = self.image.data
        shared = self.source.shared_bytes

        def act() -> Any:
            driver = CudaDriver.current()
            driver.gpu.set_current()
            kernel = core.ObjectCode.from_cubin(cubin).get_kernel(name)
            if shared:
                driver.allow_shared(kernel, shared)
            return kernel

        return CudaDriver.explain(f"the GPU does not load {name}", act)

    @once
    def machine_code(self) -> MachineCode:
        """The SASS, with the live registers of each instruction. Errors: as `require_code`."""
        compiler = f"NVRTC for {CudaDriver.current().arch}"
        image = self.image
        code: MachineCode = in_child(
            sass.read_cubin, image.data, CudaDriver.current().arch, compiler, image.log
        )
        return code

    @property
    def assembly(self) -> str:
        """The machine code as text."""
        return self.machine_code.text

    @property
    def assembly_lines(self) -> tuple[AsmLine, ...]:
        """The instructions, each with its line of the source."""
        return self.machine_code.lines

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> CudaLaunch:
        return CudaLaunch(self, buffers)


class CudaLaunch(AddressLaunch):
    """A kernel bound to its memory."""

    def __init__(self, program: CudaProgram, buffers: Sequence[Buffer]):
        self.kernel = program.kernel
        super().__init__(program.source, buffers)
        config = library("cuda.core").LaunchConfig
        sizes: dict[str, Any] = {"grid": self.grid, "block": self.group}
        if program.source.shared_bytes:
            sizes["shmem_size"] = program.source.shared_bytes
        self.config = config(**sizes)

    def __call__(self, wait: bool = True) -> None:
        driver = CudaDriver.current()
        driver.explain(
            f"CUDA cannot launch {self.name}", lambda: self.enqueue(driver, driver.stream)
        )
        if wait:
            driver.explain(f"the GPU stopped in {self.name}", driver.stream.sync)

    def timed(self) -> float:
        """Run, and return the seconds between two events of the stream."""
        return CudaDriver.explain(f"the GPU stopped in {self.name}", self._timed)

    def _timed(self) -> float:
        driver = CudaDriver.current()
        has_clock = library("cuda.core").EventOptions(timing_enabled=True)
        begin = driver.stream.record(options=has_clock)
        self.enqueue(driver, driver.stream)
        end = driver.stream.record(options=has_clock)
        end.sync()
        return float(end - begin) * 1e-3

    def enqueue(self, driver: CudaDriver, stream: Any) -> None:
        """Launch on a stream, or in a graph that is being built."""
        driver.gpu.set_current()
        addresses = self.addresses.values()
        library("cuda.core").launch(stream, self.config, self.kernel, *addresses)


# --------------------------------------------------------------------------------------------------
# Asynchronous copies to shared memory: PTX's cp.async, in a function.
#
#     __device__ inline void begin_copy_16(void *to, const void *from, int size) {
#       asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ..);
#     }
#
# Bytes from `size` on are filled with zeros. The copies since the last commit are a batch. Source:
# PTX ISA 8.5, "Data Movement and Conversion Instructions: cp.async".

COPY_BYTES = (4, 8, 16)
COMMIT = 'asm volatile("cp.async.commit_group;");'
WAIT = 'asm volatile("cp.async.wait_group %d;" ::: "memory");'


def copy_function(name: str, nbytes: int) -> str:
    """Return the function that begins a copy of `nbytes`; copies of 16 bytes bypass L1."""
    cache = "cg" if nbytes == max(COPY_BYTES) else "ca"
    return "\n".join(
        [
            f"__device__ inline void {name}(void *to, const void *from, int size) {{",
            f'  asm volatile("cp.async.{cache}.shared.global [%0], [%1], {nbytes}, %2;"',
            '      :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(size)',
            '      : "memory");',
            "}",
        ]
    )
