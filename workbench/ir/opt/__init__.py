"""Opts: values that transform a kernel. Importing any module of this folder adds all kinds."""

from workbench.ir.opt import table as table
