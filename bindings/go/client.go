//go:build cgo

package holdfast

// #cgo noescape hfgo_acquire
// #cgo nocallback hfgo_acquire
// #cgo noescape hf_lock_release
// #cgo nocallback hf_lock_release
// #cgo nocallback hf_lock_state
// #cgo nocallback hf_acquire_stop
// #include "shim.h"
import "C"

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// maxDirect calls of a client at most do a round trip on a thread of their own goroutine. What comes beyond is
// started, and done by the library's few threads: so a crowd costs a hop, not a thread each.
const maxDirect = 4

// maxBrief calls of a client at most only start or stop something. They wait for nobody, but on a busy machine the scheduler
// gives each call that is longer than 20 us a thread, which stays.
const maxBrief = 2

// Client is a connection to one store. All its methods are for every goroutine.
type Client struct {
	mu     sync.RWMutex // read: a call is in C; written: Close
	c      *C.hf_client
	closed bool
	close  sync.Once
	warn   func(name string)

	events *os.File // readable while there are events
	pumped chan struct{}

	direct atomic.Int32
	brief  chan struct{} // a place for each call that starts or stops something
	admin  chan struct{} // a place for each call that may block and has no event

	told     sync.Mutex
	lastTag  uint64
	grants   map[uint64]*grant
	entered  map[*C.hf_lock]*grant // those that are reentrant
	releases map[uint64]chan<- *Error
}

var open sync.Map // *Client: those that CloseAll closes

// OpenOption is an option of [Open].
type OpenOption func(*opening)

type opening struct {
	program string
	modules string
	warn    func(name string)
}

// Program is the name that others see beside our locks; without it, that of this program.
func Program(name string) OpenOption { return func(o *opening) { o.program = name } }

// Modules are the directories in which modules of stores are looked for, with a colon between them; HOLDFAST_MODULES
// comes before it.
func Modules(directories string) OpenOption { return func(o *opening) { o.modules = directories } }

// OnLeak is called when a lock became garbage without a release; without it, slog warns. The lock is released then.
func OnLeak(warn func(name string)) OpenOption { return func(o *opening) { o.warn = warn } }

// Open opens the store that the URL names: memory://name, sqlite:/path/locks.db, redis://host/0 ... If it is empty,
// HOLDFAST_URL says which, or else it is a file of your own. A network store can be opened before it can be reached.
func Open(url string, options ...OpenOption) (*Client, error) {
	o := opening{warn: func(name string) {
		slog.Warn("holdfast: a lock was dropped without Release; it is released now", "name", name)
	}}
	for _, option := range options {
		option(&o)
	}
	if err := checkVersion(C.GoString(C.hf_version())); err != nil {
		return nil, err
	}
	cURL, keepURL, err := text("the URL", url)
	if err != nil {
		return nil, err
	}
	cProgram, keepProgram, err := text("the program's name", o.program)
	if err != nil {
		return nil, err
	}
	cModules, keepModules, err := text("the modules", o.modules)
	if err != nil {
		return nil, err
	}
	c := &Client{
		warn: o.warn, brief: make(chan struct{}, maxBrief), admin: make(chan struct{}, maxDirect), pumped: make(chan struct{}),
		grants: map[uint64]*grant{}, entered: map[*C.hf_lock]*grant{}, releases: map[uint64]chan<- *Error{},
	}
	var e C.hf_error
	if r := C.hfgo_open(cURL, cProgram, cModules, &c.c, &e); r != C.HF_OK {
		return nil, fail(r, &e)
	}
	_, _, _ = keepURL, keepProgram, keepModules
	if err := c.startEvents(); err != nil {
		C.hf_close(c.c)
		return nil, err
	}
	open.Store(c, nil)
	return c, nil
}

// checkVersion refuses a library of another minor version than the header's.
func checkVersion(library string) error {
	minor := func(version string) string { return version[:strings.LastIndexByte(version+".", '.')] }
	if minor(library) != minor(C.HF_VERSION) {
		return failText(ErrUnsupported, "this program was built for libholdfast %s, and the library it has found is %s: build it again",
			C.HF_VERSION, library)
	}
	return nil
}

// Version is that of the library in use.
func Version() string { return C.GoString(C.hf_version()) }

// Close releases every lock that is still held, wakes all who wait (ErrClosed) and frees the client.
func (c *Client) Close() error {
	c.close.Do(func() {
		open.Delete(c)
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		c.events.SetReadDeadline(time.Unix(1, 0))
		<-c.pumped
		C.hf_close(c.c)
		c.events.Close()
		c.endAll()
	})
	return nil
}

// CloseAll closes every client of this process: call it before os.Exit, so that locks are given back.
func CloseAll() {
	open.Range(func(c, _ any) bool {
		c.(*Client).Close()
		return true
	})
}

// enter begins a call into C; leave ends it.
func (c *Client) enter(what string) *Error {
	c.mu.RLock()
	if c.closed {
		c.mu.RUnlock()
		return failText(ErrClosed, "%s: the client is closed", what)
	}
	return nil
}

func (c *Client) leave() { c.mu.RUnlock() }

// blocking begins a call that has no event, a few at a time; then done ends it.
func (c *Client) blocking(ctx context.Context, what string) (done func(), err *Error) {
	if ctx.Err() != nil {
		return nil, ended(ctx, what)
	}
	select {
	case c.admin <- struct{}{}:
	case <-ctx.Done():
		return nil, ended(ctx, what)
	}
	if err := c.enter(what); err != nil {
		<-c.admin
		return nil, err
	}
	return func() {
		c.leave()
		<-c.admin
	}, nil
}

// Acquire takes the lock, waiting until the context ends.
func (c *Client) Acquire(ctx context.Context, name string, options ...Option) (*Held, error) {
	t := newTerms(options)
	return c.acquire(ctx, name, &t)
}

func (c *Client) acquire(ctx context.Context, name string, t *terms) (*Held, error) {
	if ctx.Err() != nil {
		return nil, ended(ctx, "acquire '"+name+"'")
	}
	if deadline, ok := ctx.Deadline(); ok {
		t.until(deadline)
	}
	note, keep, bad := text("the note", t.note)
	if bad != nil {
		return nil, bad
	}
	g := &grant{client: c, name: name, parent: ctx, count: 1}
	if err := c.enter("acquire '" + name + "'"); err != nil {
		return nil, err
	}
	c.note(g)
	var got C.struct_hfgo_got
	var e C.hf_error
	here := C.int(0)
	if c.direct.Add(1) <= maxDirect || t.c.reentrant != 0 { // who enters again does not wait
		here = 1
	} else {
		c.brief <- struct{}{}
	}
	r := C.hfgo_acquire(c.c, chars(name), C.size_t(len(name)), &t.c, note, C.uint64_t(g.tag), here, &got, &e)
	if here == 0 {
		<-c.brief
	}
	c.direct.Add(-1)
	c.leave()
	_ = keep
	if r != C.HF_OK {
		c.forget(g)
		return nil, fail(r, &e).because(ctx, t)
	}
	if got.lock == nil {
		if err := g.wait(ctx); err != nil {
			return nil, err.because(ctx, t)
		}
	} else {
		g = g.begin(got.lock, uint64(got.token), t.c.reentrant != 0)
	}
	return newHeld(g), nil
}

// Adopt takes over a lock by its ticket, after [Held.Detach] or from another process, and restarts its lease. Of the
// options it uses [ByHand], [MaxHold] and [Reentrant]. Adopt only what its holder has detached, or if that is dead.
func (c *Client) Adopt(ctx context.Context, name, ticket string, options ...Option) (*Held, error) {
	t := newTerms(options)
	cTicket, keep, err := text("the ticket", ticket)
	if err != nil {
		return nil, err
	}
	if t.c.owner == 0 {
		t.c.owner = C.uint64_t(NewOwner()) // else it would be the thread
	}
	done, err := c.blocking(ctx, "adopt '"+name+"'")
	if err != nil {
		return nil, err
	}
	defer done()
	var got C.struct_hfgo_got
	var e C.hf_error
	r := C.hfgo_adopt(c.c, chars(name), C.size_t(len(name)), cTicket, &t.c, &got, &e)
	_ = keep
	if r != C.HF_OK {
		return nil, fail(r, &e)
	}
	g := &grant{client: c, name: name, parent: ctx, count: 1}
	c.note(g)
	g.begin(got.lock, uint64(got.token), t.c.reentrant != 0)
	g.watch()
	return newHeld(g), nil
}

// Capabilities are what the store can do.
func (c *Client) Capabilities() Capability {
	if c.enter("") != nil {
		return 0
	}
	defer c.leave()
	return Capability(C.hf_capabilities(c.c))
}

func chars(s string) *C.char { return (*C.char)(unsafe.Pointer(unsafe.StringData(s))) }

func bytesOf(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
