//go:build cgo && !holdfast_system

// Package csrc holds the C sources of holdfast's library with the stores memory:// and sqlite:, so that
// `go build` needs no other build system. scripts/vendor-c copies them; do not edit them here.
package csrc

// #cgo CFLAGS: -std=gnu11 -O2 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -fvisibility=hidden
// #cgo LDFLAGS: -lsqlite3 -lm -ldl -pthread
import "C"
