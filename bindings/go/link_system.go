//go:build cgo && holdfast_system

package holdfast

// #cgo pkg-config: holdfast
import "C"
