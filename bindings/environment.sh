# shellcheck shell=sh
# Sourced by each language's run-tests, with `build` set to a build directory of this tree: lets pkg-config, the
# linker, the library and PATH find what was built there, as if it was installed.

: "${build:?}"
build=$(cd -P -- "$build" && pwd) || exit 69
mkdir -p "$build/bindings"
cat >"$build/bindings/holdfast.pc.$$" <<END
Name: holdfast
Description: of $build
Version: $(sed -n 's/^#define HF_VERSION "\([^"]*\)".*/\1/p' "$(dirname -- "$0")/../../include/holdfast.h")
Cflags: -I$(cd -P -- "$(dirname -- "$0")/../.." && pwd)/include
Libs: -L$build/src -lholdfast
END
mv "$build/bindings/holdfast.pc.$$" "$build/bindings/holdfast.pc"
PKG_CONFIG_PATH=$build/bindings${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
LD_LIBRARY_PATH=$build/src${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
HOLDFAST_MODULES=$build/src/stores
PATH=$build/cli:$PATH
export PKG_CONFIG_PATH LD_LIBRARY_PATH HOLDFAST_MODULES PATH
