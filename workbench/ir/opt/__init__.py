"""Opts: values that transform a kernel. With any module of this folder come the opts themselves."""

from workbench.ir.opt import table as table
