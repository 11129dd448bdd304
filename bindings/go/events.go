//go:build cgo

package holdfast

// #include "shim.h"
import "C"

import (
	"os"
	"syscall"
)

// startEvents lets Go's poller watch the client's descriptor: one goroutine takes the events, and no thread waits.
func (c *Client) startEvents() *Error {
	fd := C.hf_event_fd(c.c)
	if fd < 0 {
		return failText(Code(fd), "open: there is no descriptor for events")
	}
	if fd = C.hfgo_dup(fd); fd < 0 { // ours to close, after the library has closed its own
		return failText(ErrSystem, "open: there is no descriptor for events")
	}
	c.events = os.NewFile(uintptr(fd), "holdfast events")
	raw, err := c.events.SyscallConn()
	if err != nil {
		c.events.Close()
		return failText(ErrSystem, "open: %v", err)
	}
	go c.pump(raw)
	return nil
}

// pump ends when Close sets the deadline.
func (c *Client) pump(raw syscall.RawConn) {
	defer close(c.pumped)
	event := new(C.struct_hfgo_event)
	raw.Read(func(uintptr) bool {
		for C.hfgo_event_next(c.c, event) == C.HF_OK {
			c.take(event)
		}
		return false
	})
}

func (c *Client) take(e *C.struct_hfgo_event) {
	tag := uint64(e.tag)
	c.told.Lock()
	g := c.grants[tag]
	if g == nil {
		g = c.entered[e.lock]
	}
	released := c.releases[tag]
	delete(c.releases, tag)
	c.told.Unlock()
	switch eventKind(e.kind) {
	case eventAcquired:
		g.tell(e.lock, uint64(e.token), nil)
	case eventFailed:
		c.forget(g)
		g.tell(nil, 0, failEvent(e))
	case eventReleased:
		if released != nil {
			released <- failEvent(e)
		}
	case eventLost:
		if g != nil { // else it is being given back
			g.lose(Cause(e.cause))
		}
	}
}

// failEvent is the error that an event tells of; nil: none.
func failEvent(e *C.struct_hfgo_event) *Error {
	if e.code == C.HF_OK {
		return nil
	}
	return &Error{
		Code: Code(e.code), Retriable: e.retriable != 0, StoreCode: int(e.store_code),
		MayHold: duration(e.may_hold_ms), text: C.GoString(&e.text[0]),
	}
}

// note gives the grant its tag: events of it may come from now on.
func (c *Client) note(g *grant) {
	c.told.Lock()
	c.lastTag++
	g.tag = c.lastTag
	c.grants[g.tag] = g
	c.told.Unlock()
}

func (c *Client) forget(g *grant) {
	c.told.Lock()
	delete(c.grants, g.tag)
	c.told.Unlock()
}

// expect gives a release its tag.
func (c *Client) expect(released chan<- *Error) uint64 {
	c.told.Lock()
	defer c.told.Unlock()
	c.lastTag++
	c.releases[c.lastTag] = released
	return c.lastTag
}

// endAll tells all who wait, and all who hold, that the client is closed: the library tells no more.
func (c *Client) endAll() {
	c.told.Lock()
	grants, releases := c.grants, c.releases
	c.grants, c.releases = map[uint64]*grant{}, map[uint64]chan<- *Error{}
	c.entered = map[*C.hf_lock]*grant{}
	c.told.Unlock()
	for _, g := range grants {
		g.tell(nil, 0, failText(ErrClosed, "acquire '%s': the client was closed", g.name))
		g.lose(CauseClosed)
	}
	for _, released := range releases {
		released <- failText(ErrClosed, "release: the client was closed")
	}
}
