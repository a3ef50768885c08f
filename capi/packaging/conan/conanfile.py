"""nbbs from this source tree: `conan create capi/packaging/conan`. Takes Rust 1.88 and CMake, and no network."""

import os
import re
import subprocess

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, load, rm, rmdir

required_conan_version = ">=2.0"


class NbbsConan(ConanFile):
    name = "nbbs"
    description = "Lock-free buddy allocation with the bookkeeping outside the memory it manages"
    license = "MIT OR Apache-2.0"
    topics = ("allocator", "buddy", "lock-free", "memory-management", "kernel")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "..", "..", "include", "nbbs.h"))
        self.version = re.search(r'NBBS_VERSION "(.*)"', header).group(1)

    def export_sources(self):
        script = os.path.join(self.recipe_folder, "..", "source.sh")
        subprocess.run([script, self.export_sources_folder], check=True)

    def configure(self):
        # The library is C for whoever links it.
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    @property
    def _tree(self):
        return os.path.join(self.source_folder, f"nbbs-{self.version}")

    def generate(self):
        CMakeToolchain(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder=os.path.join(self._tree, "capi"))
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE-*", self._tree, os.path.join(self.package_folder, "licenses"))
        lib = os.path.join(self.package_folder, "lib")
        # Of the two that are built, the one that was asked for. What finds it is made by Conan.
        rm(self, "*.a" if self.options.shared else "*.so*", lib)
        rmdir(self, os.path.join(lib, "pkgconfig"))
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        self.cpp_info.libs = ["nbbs"]
        self.cpp_info.defines = ["NBBS_WITHOUT_SHARED_MEMORY"]
        kind = "shared" if self.options.shared else "static"
        self.cpp_info.set_property("cmake_target_aliases", [f"nbbs::{kind}"])
        if not self.options.shared and self.settings.os in ["Linux", "FreeBSD"]:
            self.cpp_info.system_libs = ["pthread", "dl", "m"]
