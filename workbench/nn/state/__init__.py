"""State dicts, and files of weights."""

from workbench.nn.state.load_state import get_parameters as get_parameters
from workbench.nn.state.load_state import get_state_dict as get_state_dict
from workbench.nn.state.load_state import load_state_dict as load_state_dict
from workbench.nn.state.load_state import tar_extract as tar_extract
from workbench.nn.state.load_state import zip_extract as zip_extract
from workbench.nn.state.safetensors_file import safe_load as safe_load
from workbench.nn.state.safetensors_file import safe_load_metadata as safe_load_metadata
from workbench.nn.state.safetensors_file import safe_save as safe_save
from workbench.nn.state.torch_file import torch_load as torch_load
