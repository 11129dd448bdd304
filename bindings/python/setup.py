"""What pyproject.toml cannot say: the compiled module, and the tag of its stable ABI.

HOLDFAST_BUNDLE=DIR puts the library of that directory (libholdfast.so.0, and modules holdfast-*.so, if there are)
into the wheel, so that it needs none of the system."""

import glob
import os
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py

BUNDLE = os.environ.get("HOLDFAST_BUNDLE")
if BUNDLE:
    os.environ["HOLDFAST_LDFLAGS"] = "-Wl,-rpath,$ORIGIN/_lib"


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        if BUNDLE:
            folder = os.path.join(self.build_lib, "holdfast", "_lib")
            os.makedirs(folder, exist_ok=True)
            for file in glob.glob(BUNDLE + "/libholdfast.so.[0-9]") + glob.glob(BUNDLE + "/holdfast-*.so"):
                shutil.copy(file, folder)


setup(cffi_modules=["build_native.py:ffi"], options={"bdist_wheel": {"py_limited_api": "cp310"}},
      cmdclass={"build_py": BuildWithLibrary})
