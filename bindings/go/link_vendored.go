//go:build cgo && !holdfast_system

package holdfast

// #cgo CFLAGS: -I${SRCDIR}/csrc
import "C"

import _ "holdfast.example/holdfast/csrc" // the library itself
