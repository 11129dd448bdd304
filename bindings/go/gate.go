//go:build cgo

package holdfast

// #include "shim.h"
import "C"

import "runtime"

// Gate is kept with a resource: it refuses sequencers that are older than what it has seen, and asks no store. Save
// its levels with the resource's data and restore them before the first request, or a restart forgets them.
type Gate struct{ c *C.hf_gate }

// NewGate makes one that has seen nothing.
func NewGate() (*Gate, error) {
	g := new(Gate)
	if r := C.hf_gate_new(&g.c); r != C.HF_OK {
		return nil, failText(Code(r), "gate: %s", Code(r).Error())
	}
	runtime.AddCleanup(g, func(c *C.hf_gate) { C.hf_gate_free(c) }, g.c)
	return g, nil
}

// Pass lets a sequencer through, or returns ErrStale, ErrInvalid, or ErrUnsupported: a grant with a limit has no order.
func (g *Gate) Pass(sequencer string) error {
	s, keep, bad := text("the sequencer", sequencer)
	if bad != nil {
		return bad
	}
	var e C.hf_error
	r := C.hf_gate_pass(g.c, s, &e)
	runtime.KeepAlive(g)
	_ = keep
	if r != C.HF_OK {
		return fail(r, &e)
	}
	return nil
}

// Levels are the newest tokens that have passed for this name. ErrNotFound: none has.
func (g *Gate) Levels(name string) (exclusive, highest uint64, err error) {
	var e, h C.uint64_t
	r := C.hf_gate_levels(g.c, chars(name), C.size_t(len(name)), &e, &h)
	runtime.KeepAlive(g)
	if r != C.HF_OK {
		return 0, 0, failText(Code(r), "gate: '%s': %s", name, Code(r).Error())
	}
	return uint64(e), uint64(h), nil
}

// Restore raises the levels of this name, and never lowers them.
func (g *Gate) Restore(name string, exclusive, highest uint64) error {
	r := C.hf_gate_restore(g.c, chars(name), C.size_t(len(name)), C.uint64_t(exclusive), C.uint64_t(highest))
	runtime.KeepAlive(g)
	if r != C.HF_OK {
		return failText(Code(r), "gate: '%s': %s", name, Code(r).Error())
	}
	return nil
}
