//go:build cgo

package holdfast

// #include "shim.h"
import "C"

import (
	"math"
	"strings"
	"sync/atomic"
	"time"
)

// terms are what an acquire asks for.
type terms struct {
	c         C.struct_hfgo_terms
	note      string
	byContext bool // the wait is what the context leaves
}

// Option says what kind of lock is wanted. Without any, it is exclusive, with a lease of 30 s that is renewed in the
// background, and the wait has no limit but the context's.
type Option func(*terms)

// Shared asks for a lock that other shared holders may hold too.
func Shared() Option { return func(t *terms) { t.c.shared = 1 } }

// Limit asks for a shared lock with at most n holders.
func Limit(n uint32) Option {
	return func(t *terms) { t.c.shared, t.c.limit = 1, C.uint32_t(n) }
}

// TTL is the lease: how long the lock stays if its holder vanishes.
func TTL(d time.Duration) Option { return func(t *terms) { t.c.ttl_ms = milliseconds(d) } }

// NeverExpires asks for a lock that stays until it is released or broken.
func NeverExpires() Option { return func(t *terms) { t.c.ttl_ms = C.HF_NEVER } }

// Timeout limits the wait, as the context does; 0: do not wait for others.
func Timeout(d time.Duration) Option { return func(t *terms) { t.c.wait_ms = milliseconds(d) } }

// LockDelay keeps the lock closed this much longer if its holder vanishes without a release.
func LockDelay(d time.Duration) Option {
	return func(t *terms) { t.c.lock_delay_ms = milliseconds(d) }
}

// MaxHold ends the renewals after this time; then the lock is lost.
func MaxHold(d time.Duration) Option { return func(t *terms) { t.c.max_hold_ms = milliseconds(d) } }

// Patience is how long to keep trying while the store does not answer, within the wait.
func Patience(d time.Duration) Option {
	return func(t *terms) {
		t.c.patience_ms = milliseconds(d)
		if d == Forever {
			t.c.patience_ms = C.HF_FOREVER
		}
	}
}

// Note is shown to people who look at the lock; at most 256 bytes.
func Note(text string) Option { return func(t *terms) { t.note = text } }

// Reentrant lets this owner acquire the lock again while it holds it, on the terms of the first time.
func Reentrant(owner Owner) Option {
	return func(t *terms) { t.c.reentrant, t.c.owner = 1, C.uint64_t(owner) }
}

// ByHand asks for no renewal in the background: call [Held.Renew].
func ByHand() Option { return func(t *terms) { t.c.by_hand = 1 } }

// Confirmed makes Acquire return only after the store has recorded that we know of the grant.
func Confirmed() Option { return func(t *terms) { t.c.confirmed = 1 } }

// Owner names who holds a lock, for [Reentrant]. Without it every acquire is an owner of its own: goroutines have no
// identity, and share threads.
type Owner uint64

var lastOwner atomic.Uint64

// NewOwner makes one that nobody else in this process has.
func NewOwner() Owner { return Owner(1<<62 | lastOwner.Add(1)) }

func newTerms(options []Option) terms {
	t := terms{c: C.struct_hfgo_terms{wait_ms: C.HF_FOREVER}}
	for _, option := range options {
		option(&t)
	}
	return t
}

// until shortens the wait to the time that the context leaves.
func (t *terms) until(deadline time.Time) {
	left := milliseconds(max(time.Until(deadline), time.Millisecond))
	if t.c.wait_ms == C.HF_FOREVER || (t.c.wait_ms > left && t.c.wait_ms != math.MaxInt64) {
		t.c.wait_ms, t.byContext = left, true
	}
}

// text is a string as C wants it, nil if it is empty. One with a NUL in it would be cut there.
func text(what, s string) (*C.char, []byte, *Error) {
	if s == "" {
		return nil, nil, nil
	}
	if strings.IndexByte(s, 0) >= 0 {
		return nil, nil, failText(ErrInvalid, "%s must not contain a NUL", what)
	}
	bytes := append([]byte(s), 0)
	return (*C.char)(bytesOf(bytes)), bytes, nil
}
