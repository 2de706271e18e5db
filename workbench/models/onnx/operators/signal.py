"""Spectra of signals: Fourier transforms, and the weights of mel bins.

A complex number is an axis of two, its real and its imaginary part; an axis of one is real.
"""

from __future__ import annotations

import numpy as np

from workbench.base.errors import ModelError
from workbench.models.onnx.operators.movement import padded
from workbench.models.onnx.table import row
from workbench.models.onnx.values import Array, axis_of, check_positions, dtype_of
from workbench.tensor.tensor import Tensor


@row("DFT", since=17, known=("dft_length",))
def dft_fixed(
    x: Tensor,
    dft_length: Array | None = None,
    *,
    axis: int = 1,
    inverse: int = 0,
    onesided: int = 0,
) -> Tensor:
    """The Fourier transform along an axis, as a product with a matrix. `onesided` leaves out the
    half of a spectrum that follows from the other one, since the signal is real."""
    axis = axis_of(axis, x.ndim)
    if axis == x.ndim - 1 or x.shape[-1] not in (1, 2):
        raise ModelError("cannot transform a signal", f"axis {axis} of {x.shape} is not of numbers")
    is_to_real = bool(inverse and onesided)
    count = 2 * (x.shape[axis] - 1) if is_to_real else x.shape[axis]
    count = count if dft_length is None else int(dft_length.item())
    if count < 1:
        raise ModelError("cannot transform a signal", f"its transform has {count} elements")
    read = count // 2 + 1 if is_to_real else count
    made = count // 2 + 1 if onesided and not inverse else count
    x = padded(x, (0, read - x.shape[axis]), (axis,), "constant").transpose(axis, -2)
    matrix = _turns(made, read, count, bool(inverse))
    if is_to_real:  # each frequency stands for its negative one, too
        matrix[:, 1 : (count + 1) // 2] *= 2
    # (made, 2, read, 2): real and imaginary parts of products of complex numbers
    parts = np.stack([matrix.real, -matrix.imag, matrix.imag, matrix.real], -1)
    parts = parts.reshape(made, read, 2, 2).transpose(0, 2, 1, 3)
    parts = parts[:, : 1 if is_to_real else 2, :, : x.shape[-1]].reshape(-1, read * x.shape[-1])
    y = x.flatten(-2) @ Tensor(parts.T.copy()).cast(x.dtype)
    return y.reshape((*y.shape[:-1], made, -1)).transpose(axis, -2)


@row("DFT", since=20, known=("dft_length", "axis"))
def dft(
    x: Tensor,
    dft_length: Array | None = None,
    axis: Array | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Tensor:
    along = -2 if axis is None else int(axis.item())
    return dft_fixed(x, dft_length, axis=along, inverse=inverse, onesided=onesided)


def _turns(rows: int, columns: int, count: int, is_inverse: bool) -> Array:
    """Return the powers of the root of 1 of order `count`, or of its inverse by `count`."""
    check_positions(4 * rows * columns)
    powers = np.outer(np.arange(rows), np.arange(columns)) % count
    angles = 2 * np.pi * powers / count
    turns: Array = np.exp(1j * angles) / count if is_inverse else np.exp(-1j * angles)
    return turns


@row("STFT", since=17, known=("frame_step", "frame_length"))
def stft(
    signal: Tensor,
    frame_step: Array,
    window: Tensor | None = None,
    frame_length: Array | None = None,
    *,
    onesided: int = 1,
) -> Tensor:
    """Fourier transforms of frames of a signal, each times a window."""
    x = signal.unsqueeze(-1) if signal.ndim == 2 else signal
    if frame_length is not None:
        length = int(frame_length.item())
    else:
        length = x.shape[1] if window is None else window.shape[0]
    frames = x.transpose(1, 2).unfold(2, length, int(frame_step.item())).permute((0, 2, 3, 1))
    frames = frames if window is None else frames * window.reshape((-1, 1))
    return dft_fixed(frames, axis=2, onesided=onesided)


@row("MelWeightMatrix", since=17, known=("bins", "length", "rate", "lowest", "highest"))
def mel_weights(
    bins: Array,
    length: Array,
    rate: Array,
    lowest: Array,
    highest: Array,
    *,
    output_datatype: int = 1,
) -> Tensor:
    """The weights of the frequencies of a spectrum in mel bins: triangles that overlap."""
    count, spectrum = int(bins.item()), int(length.item()) // 2 + 1
    check_positions(count * spectrum)
    low, high = (2595 * np.log10(1 + n.item() / 700) for n in (lowest, highest))
    mels = low + np.arange(count + 2) * (high - low) / (count + 2)
    hertz = 700 * (10 ** (mels / 2595) - 1)
    edges = np.floor((int(length.item()) + 1) * hertz / rate.item())
    places = np.arange(spectrum)[:, None]
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    up = np.where(middle > left, (places - left) / np.maximum(middle - left, 1), places == middle)
    down = (right - places) / np.maximum(right - middle, 1)
    weights = np.where(places <= middle, up, down).clip(0)
    return Tensor(np.where(places >= left, weights, 0)).cast(dtype_of(output_datatype))
