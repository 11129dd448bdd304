//go:build cgo

package holdfast

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// String is what people call it.
func (s State) String() string {
	switch s {
	case StateHeld:
		return "held"
	case StateAtRisk:
		return "at risk"
	}
	return "lost"
}

// Held is a lock that was obtained. Give it back with Release; all other methods are for every goroutine, also
// beside and after that: they then say that it is over.
type Held struct {
	g       *grant
	over    atomic.Bool // released or detached
	cleanup runtime.Cleanup
}

func newHeld(g *grant) *Held {
	h := &Held{g: g}
	h.cleanup = runtime.AddCleanup(h, func(g *grant) { go g.leak() }, g)
	return h
}

// grant is what the library's handle is to us. Held's of a reentrant owner share one.
type grant struct {
	client *Client
	name   string
	tag    uint64
	parent context.Context

	mu      sync.RWMutex // read: a call on `lock` is in C
	lock    *C.hf_lock   // nil: not yet, or given back
	token   uint64
	count   int
	told    bool // of its end: err, or lock
	err     *Error
	done    chan struct{}   // closed when told; nil: nobody waits yet
	over    error           // why its context has ended, or will when somebody asks for it
	lost    chan struct{}   // nil: nobody has asked
	cause   Cause           // why it was lost
	ctx     context.Context // nil: nobody has asked
	cancel  context.CancelCauseFunc
	watched *os.File
}

// begin is for a lock that was had at once. An owner that entered again gets the grant of the first time.
func (g *grant) begin(lock *C.hf_lock, token uint64, reentrant bool) *grant {
	c := g.client
	g.mu.Lock()
	g.lock, g.token, g.told = lock, token, true
	g.mu.Unlock()
	if !reentrant {
		return g
	}
	c.told.Lock()
	defer c.told.Unlock()
	if first := c.entered[lock]; first != nil && first.enter() {
		delete(c.grants, g.tag)
		return first
	}
	c.entered[lock] = g
	return g
}

// enter counts one more; false: it was given back in this moment.
func (g *grant) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lock == nil {
		return false
	}
	g.count++
	return true
}

// tell is how a wait ends; it does nothing for one that has ended.
func (g *grant) tell(lock *C.hf_lock, token uint64, err *Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.told {
		return
	}
	g.lock, g.token, g.err, g.told = lock, token, err, true
	if g.done != nil {
		close(g.done)
	}
}

// wait ends when it is told; if the context ends before, the bid is withdrawn.
func (g *grant) wait(ctx context.Context) *Error {
	g.mu.Lock()
	if !g.told {
		g.done = make(chan struct{})
	}
	done := g.done
	g.mu.Unlock()
	if done != nil {
		select {
		case <-done:
		case <-ctx.Done():
			if g.client.enter("") == nil {
				g.client.brief <- struct{}{}
				C.hf_acquire_stop(g.client.c, C.uint64_t(g.tag))
				<-g.client.brief
				g.client.leave()
			}
			<-done
		}
	}
	return g.err
}

// lose is told once: the lock is no longer ours.
func (g *grant) lose(cause Cause) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause != CauseNone {
		return
	}
	g.cause = cause
	if g.lost != nil {
		close(g.lost)
	}
	g.end(failText(ErrLost, "lock '%s' was lost: %v", g.name, cause))
}

// end ends its context, for the first reason. mu is held.
func (g *grant) end(why error) {
	if g.over == nil {
		g.over = why
	}
	if g.cancel != nil {
		g.cancel(g.over)
	}
}

// takeBack counts one holder less; the handle comes out with the last, and is nobody else's any more.
func (g *grant) takeBack() (lock *C.hf_lock, last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	lock = g.lock
	if g.count--; g.count > 0 {
		return lock, false
	}
	g.lock = nil
	g.end(context.Canceled)
	return lock, true
}

func (g *grant) forgotten(lock *C.hf_lock) {
	c := g.client
	c.told.Lock()
	delete(c.grants, g.tag)
	if c.entered[lock] == g {
		delete(c.entered, lock)
	}
	c.told.Unlock()
	if g.watched != nil {
		g.watched.Close()
	}
}

func (g *grant) release() *Error {
	c := g.client
	lock, last := g.takeBack()
	if last {
		defer g.forgotten(lock)
	}
	var e C.hf_error
	if c.enter("") != nil { // closed, or about to be: it frees the handle, or is in time
		return failed(C.hf_lock_release(lock, &e), &e)
	}
	if c.direct.Add(1) <= maxDirect {
		r := C.hf_lock_release(lock, &e)
		c.direct.Add(-1)
		c.leave()
		return failed(r, &e)
	}
	c.direct.Add(-1)
	released := make(chan *Error, 1)
	tag := c.expect(released)
	c.brief <- struct{}{}
	r := C.hf_release_start(lock, C.uint64_t(tag), &e)
	<-c.brief
	c.leave()
	if r != C.HF_OK { // the library has no thread or memory for it
		c.told.Lock()
		delete(c.releases, tag)
		c.told.Unlock()
		return failed(C.hf_lock_release(lock, &e), &e)
	}
	return <-released
}

// leak is what the garbage collector does for a lock that nobody released.
func (g *grant) leak() {
	g.client.warn(g.name)
	if lock, last := g.takeBack(); last {
		var e C.hf_error
		g.forgotten(lock)
		C.hf_release_start(lock, 0, &e)
	}
}

// watch tells of the loss of a lock that was adopted: the library has no event for it.
func (g *grant) watch() {
	fd := C.hf_lock_fd(g.lock)
	if fd >= 0 {
		fd = C.hfgo_dup(fd)
	}
	if fd < 0 {
		return // State still says it
	}
	g.watched = os.NewFile(uintptr(fd), "holdfast lock")
	raw, err := g.watched.SyscallConn()
	if err != nil {
		return
	}
	go raw.Read(func(uintptr) bool {
		g.mu.RLock()
		over := g.lock == nil || C.hf_lock_state(g.lock) == C.HF_STATE_LOST
		cause := CauseNone
		if over && g.lock != nil {
			cause = Cause(C.hf_lock_cause(g.lock))
		}
		g.mu.RUnlock()
		if cause != CauseNone {
			g.lose(cause)
		}
		return over
	})
}

// Release gives the lock back. ErrStale: it was no longer ours, and nothing has changed. ErrUnknown: the store did
// not answer; the client goes on trying in the background. A second Release returns ErrStale and does nothing.
func (h *Held) Release() error {
	if err := h.finish("release"); err != nil {
		return err
	}
	if err := h.g.release(); err != nil {
		return err
	}
	return nil
}

// finish lets only one give the lock back.
func (h *Held) finish(what string) error {
	if !h.over.CompareAndSwap(false, true) {
		return failText(ErrStale, "%s '%s': it was given back before", what, h.g.name)
	}
	h.cleanup.Stop()
	return nil
}

// Detach leaves the lock in the store, where it lasts until its lease ends or somebody adopts it by this ticket.
func (h *Held) Detach() (ticket string, err error) {
	ticket = h.Ticket()
	if !h.over.CompareAndSwap(false, true) {
		return "", failText(ErrStale, "detach '%s': it was given back before", h.g.name)
	}
	if err := h.g.detach(); err != nil {
		h.over.Store(false)
		return "", err
	}
	h.cleanup.Stop()
	return ticket, nil
}

func (g *grant) detach() error {
	if err := g.client.enter("detach '" + g.name + "'"); err != nil {
		return err
	}
	defer g.client.leave()
	g.mu.Lock()
	lock := g.lock
	var e C.hf_error
	r := C.hf_lock_detach(lock, &e)
	if r == C.HF_OK {
		g.lock = nil
		g.end(context.Canceled)
	}
	g.mu.Unlock()
	if r != C.HF_OK {
		return fail(r, &e)
	}
	g.forgotten(lock) // takes another mutex, before which this one may be taken
	return nil
}

// ended says why nothing can be done with it any more; nil: something can. g.mu is held.
func (h *Held) ended(what string) *Error {
	g := h.g
	code := ErrLost
	switch {
	case h.over.Load() || g.lock == nil:
		code = ErrStale
	case g.cause == CauseClosed:
		code = ErrClosed
	case C.hf_lock_state(g.lock) != C.HF_STATE_LOST:
		return nil
	}
	return failText(code, "%s '%s': %s", what, g.name, code.Error())
}

// Renew renews the lease now. You need it only with [ByHand].
func (h *Held) Renew() error {
	h.g.mu.RLock()
	defer h.g.mu.RUnlock()
	if err := h.ended("renew"); err != nil {
		return err
	}
	var e C.hf_error
	if r := C.hf_lock_renew(h.g.lock, &e); r != C.HF_OK {
		return fail(r, &e)
	}
	return nil
}

// Context ends when the lock is lost or given back, and with the context of the acquire. context.Cause says why.
func (h *Held) Context() context.Context {
	g := h.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx == nil {
		g.ctx, g.cancel = context.WithCancelCause(g.parent)
		if g.over != nil {
			g.cancel(g.over)
		}
	}
	return g.ctx
}

// Lost is closed when the lock is lost.
func (h *Held) Lost() <-chan struct{} {
	g := h.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lost == nil {
		g.lost = make(chan struct{})
		if g.cause != CauseNone {
			close(g.lost)
		}
	}
	return g.lost
}

// Cause says why the lock was lost; CauseNone: it was not, as far as we know.
func (h *Held) Cause() Cause {
	h.g.mu.RLock()
	defer h.g.mu.RUnlock()
	if h.g.cause == CauseNone && h.g.lock != nil {
		return Cause(C.hf_lock_cause(h.g.lock))
	}
	return h.g.cause
}

// String is a short sentence.
func (c Cause) String() string {
	if c >= 0 && int(c) < len(causeTexts) {
		return causeTexts[c]
	}
	return fmt.Sprintf("unknown cause %d", int(c))
}

// State is true at the moment of the answer, not on the next line. What was given back is StateLost.
func (h *Held) State() State {
	h.g.mu.RLock()
	defer h.g.mu.RUnlock()
	if h.over.Load() || h.g.lock == nil {
		return StateLost
	}
	return State(C.hf_lock_state(h.g.lock))
}

// Remaining is how long the lock stays ours without another renewal; 0 when it is lost, Forever if it never expires.
func (h *Held) Remaining() time.Duration {
	h.g.mu.RLock()
	defer h.g.mu.RUnlock()
	if h.over.Load() || h.g.lock == nil {
		return 0
	}
	return duration(C.hf_lock_remaining_ms(h.g.lock))
}

// Err says why the last renewal failed, which is the reason behind StateAtRisk; nil: it did not.
func (h *Held) Err() error {
	h.g.mu.RLock()
	defer h.g.mu.RUnlock()
	if h.over.Load() || h.g.lock == nil {
		return failText(ErrStale, "'%s': it was given back before", h.g.name)
	}
	var e C.hf_error
	if r := C.hf_lock_error(h.g.lock, &e); r != C.HF_OK {
		return fail(r, &e)
	}
	return nil
}

// Token is the fencing token, larger than that of every earlier grant of this name. It is 0, which every resource
// refuses, when the lock is over, and if the store has none.
func (h *Held) Token() uint64 {
	h.g.mu.RLock()
	defer h.g.mu.RUnlock()
	if h.ended("token of") != nil {
		return 0
	}
	return h.g.token
}

// Name is the name of the lock.
func (h *Held) Name() string { return h.g.name }

// Ticket is the secret by which the lock can be adopted or broken; "" when it was given back.
func (h *Held) Ticket() string {
	h.g.mu.RLock()
	defer h.g.mu.RUnlock()
	if h.over.Load() || h.g.lock == nil {
		return ""
	}
	return C.GoString(C.hf_lock_ticket(h.g.lock))
}

// Sequencer is a proof to show to a resource, for [Client.Check] and [Gate]. It does not contain the ticket.
func (h *Held) Sequencer() (string, error) {
	h.g.mu.RLock()
	defer h.g.mu.RUnlock()
	if err := h.ended("sequencer of"); err != nil {
		return "", err
	}
	buf := make([]byte, C.HF_SEQUENCER_MAX)
	if r := C.hf_lock_sequencer(h.g.lock, (*C.char)(bytesOf(buf)), C.size_t(len(buf))); r != C.HF_OK {
		return "", failText(Code(r), "sequencer of '%s': %s", h.g.name, Code(r).Error())
	}
	return C.GoString((*C.char)(bytesOf(buf))), nil
}
