//go:build cgo

package holdfast

// #include "shim.h"
import "C"

import (
	"context"
	"time"
	"unsafe"
)

// Entry is one holder or waiter.
type Entry struct {
	Name      string
	Place     Place
	Position  int // in the queue, from 1; 0 for holders
	Mode      Mode
	Limit     uint32
	Ticket    string
	Token     uint64        // 0 while waiting
	TTL       time.Duration // Forever: until released or broken
	LockDelay time.Duration
	Age       time.Duration // how long it has held or waited
	// Remaining is what is left of the lease or lock-delay, or until a waiter must report again; Forever: no lease.
	Remaining time.Duration
	Claimed   bool // the holder knows that it holds

	Host, User, Program, Note string
	PID                       int
}

// Query says what to look at; the zero value: everything.
type Query struct {
	Name      string        // exactly this lock; "": any
	Prefix    string        // names that begin like this
	OlderThan time.Duration // only holders of at least this age; 0: all, and waiters
}

// Inspect finds holders and waiters, sorted by name, holders before waiters, waiters in the order of the queue.
func (c *Client) Inspect(ctx context.Context, query Query) ([]Entry, error) {
	done, err := c.blocking(ctx, "inspect")
	if err != nil {
		return nil, err
	}
	defer done()
	var view *C.hf_view
	var e C.hf_error
	r := C.hfgo_inspect(c.c, chars(query.Name), C.size_t(len(query.Name)), chars(query.Prefix),
		C.size_t(len(query.Prefix)), milliseconds(query.OlderThan), &view, &e)
	if r != C.HF_OK {
		return nil, fail(r, &e)
	}
	defer C.hf_view_free(view)
	entries := make([]Entry, int(C.hf_view_count(view)))
	for i := range entries {
		entries[i] = newEntry(C.hf_view_entry(view, C.size_t(i)))
	}
	return entries, nil
}

func newEntry(e *C.hf_entry) Entry {
	return Entry{
		Name: C.GoStringN(e.name, C.int(e.name_len)), Place: Place(e.place), Position: int(e.position),
		Mode: Mode(e.mode), Limit: uint32(e.limit), Ticket: C.GoString(&e.ticket[0]),
		Token: uint64(e.generation), TTL: duration(e.ttl_ms), LockDelay: duration(e.lock_delay_ms),
		Age: duration(e.age_ms), Remaining: duration(e.remaining_ms), Claimed: e.claimed != 0,
		Host: C.GoString(e.host), User: C.GoString(e.user), Program: C.GoString(e.program),
		Note: C.GoString(e.note), PID: int(e.pid),
	}
}

// Break takes the lock away from a ticket. A holder with a lease may be alive, so the lock stays closed until its
// lease ends; `now` skips that wait.
func (c *Client) Break(ctx context.Context, name, ticket string, now bool) error {
	cTicket, keep, bad := text("the ticket", ticket)
	if bad != nil {
		return bad
	}
	done, err := c.blocking(ctx, "break '"+name+"'")
	if err != nil {
		return err
	}
	defer done()
	var e C.hf_error
	atOnce := C.int(0)
	if now {
		atOnce = 1
	}
	r := C.hf_break(c.c, chars(name), C.size_t(len(name)), cTicket, atOnce, &e)
	_ = keep
	if r != C.HF_OK {
		return fail(r, &e)
	}
	return nil
}

// Check asks the store whether the grant behind this sequencer is live now; ErrStale: it is not.
func (c *Client) Check(ctx context.Context, sequencer string) error {
	s, keep, bad := text("the sequencer", sequencer)
	if bad != nil {
		return bad
	}
	done, err := c.blocking(ctx, "check")
	if err != nil {
		return err
	}
	defer done()
	var e C.hf_error
	r := C.hf_check(c.c, s, &e)
	_ = keep
	if r != C.HF_OK {
		return fail(r, &e)
	}
	return nil
}

// Setup creates what the store needs (tables, directories) and leaves alone what exists.
func (c *Client) Setup(ctx context.Context) error {
	done, err := c.blocking(ctx, "setup")
	if err != nil {
		return err
	}
	defer done()
	var e C.hf_error
	if r := C.hf_setup(c.c, &e); r != C.HF_OK {
		return fail(r, &e)
	}
	return nil
}

// Purge removes the records of free locks that nobody has touched for so long; 0: the store's own option `retain`.
// Very many need several calls: none is left when it returns 0.
func (c *Client) Purge(ctx context.Context, retain time.Duration) (uint64, error) {
	done, err := c.blocking(ctx, "purge")
	if err != nil {
		return 0, err
	}
	defer done()
	var e C.hf_error
	var count C.uint64_t
	if r := C.hf_purge(c.c, milliseconds(retain), &count, &e); r != C.HF_OK {
		return 0, fail(r, &e)
	}
	return uint64(count), nil
}

// Finding is what [Client.Diagnose] has seen. Level: 0 fine, 1 note, 2 warning, 3 problem.
type Finding struct {
	Level        int
	Clause, Text string // Clause: "C3", or ""
}

// Diagnose examines a live store.
func (c *Client) Diagnose(ctx context.Context) ([]Finding, error) {
	done, err := c.blocking(ctx, "diagnose")
	if err != nil {
		return nil, err
	}
	defer done()
	var list C.struct_hfgo_list
	var e C.hf_error
	r := C.hfgo_diagnose(c.c, &list, &e)
	defer C.hfgo_findings_free(&list)
	if r != C.HF_OK {
		return nil, fail(r, &e)
	}
	var findings []Finding
	for _, f := range unsafe.Slice((*C.struct_hfgo_finding)(list.items), list.count) {
		findings = append(findings, Finding{Level: int(f.level), Clause: C.GoString(f.clause), Text: C.GoString(f.text)})
	}
	return findings, nil
}

// StoreInfo is a store that this installation knows. Missing says why it cannot be used; "": it can.
type StoreInfo struct {
	Name, Schemes, Summary, Options, DDL, Missing string
	Capabilities                                  Capability
}

// Stores lists the stores that this installation knows.
func Stores() ([]StoreInfo, error) {
	var list C.struct_hfgo_list
	r := C.hfgo_stores(&list)
	defer C.hfgo_stores_free(&list)
	if r != C.HF_OK {
		return nil, failText(Code(r), "stores: %s", Code(r).Error())
	}
	var stores []StoreInfo
	for _, s := range unsafe.Slice((*C.struct_hfgo_store)(list.items), list.count) {
		stores = append(stores, StoreInfo{
			Name: C.GoString(s.name), Schemes: C.GoString(s.schemes), Summary: C.GoString(s.summary),
			Options: C.GoString(s.options), DDL: C.GoString(s.ddl), Missing: C.GoString(s.missing),
			Capabilities: Capability(s.capabilities),
		})
	}
	return stores, nil
}
