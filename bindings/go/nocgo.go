//go:build !cgo

package holdfast

const _ int = "holdfast is a C library: set CGO_ENABLED=1 and install a C compiler and SQLite's header (libsqlite3-dev)"
