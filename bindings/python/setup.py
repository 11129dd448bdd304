"""What pyproject.toml cannot say: the compiled module, and the tag of its stable ABI.

HOLDFAST_PLATFORM=manylinux_2_28_x86_64 names the platform that the wheel is for, if it is not the one that it is built on:
scripts/release.py compiles for each, with the library inside."""

import os

from setuptools import setup

wheel = {"py_limited_api": "cp310"}
if "HOLDFAST_PLATFORM" in os.environ:
    wheel["plat_name"] = os.environ["HOLDFAST_PLATFORM"]

setup(cffi_modules=["build_native.py:ffi"], options={"bdist_wheel": wheel})
