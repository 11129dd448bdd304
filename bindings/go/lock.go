//go:build cgo

package holdfast

import (
	"context"
	"errors"
	"sync"
)

// Lock describes a lock; it holds nothing. Each Acquire makes a [Held] of its own.
type Lock struct {
	client  *Client
	name    string
	options []Option
}

// Lock describes the lock of this name, to be acquired on these terms.
func (c *Client) Lock(name string, options ...Option) *Lock {
	return &Lock{client: c, name: name, options: options}
}

// Name is the name of the lock.
func (l *Lock) Name() string { return l.name }

// Acquire takes the lock, waiting until the context ends. Options here come after those of the description.
func (l *Lock) Acquire(ctx context.Context, options ...Option) (*Held, error) {
	t := newTerms(l.options)
	for _, option := range options {
		option(&t)
	}
	return l.client.acquire(ctx, l.name, &t)
}

// TryAcquire does not wait for others: ErrBusy.
func (l *Lock) TryAcquire(ctx context.Context, options ...Option) (*Held, error) {
	return l.Acquire(ctx, append(options[:len(options):len(options)], Timeout(0))...)
}

// Do runs work while it holds the lock. The context that work gets ends when the lock is lost; then, and when the
// release says that it was not held to the end, the error says so.
func (l *Lock) Do(ctx context.Context, work func(ctx context.Context, held *Held) error) (err error) {
	held, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	return work(held.Context(), held)
}

// Locker is the lock as package sync knows it. Lock panics with the [*Error] if the lock cannot be had, Unlock if
// nothing is locked; that the lock was lost meanwhile nobody is told. Use [Lock.Acquire] where you can.
func (l *Lock) Locker() *Locker { return &Locker{lock: l} }

// Locker is a [sync.Locker]. Of a shared lock it may be locked several times.
type Locker struct {
	lock *Lock
	mu   sync.Mutex
	held []*Held
}

var _ sync.Locker = (*Locker)(nil)

// Lock waits until it holds the lock.
func (l *Locker) Lock() {
	held, err := l.lock.Acquire(context.Background())
	if err != nil {
		panic(err)
	}
	l.keep(held)
}

// TryLock does not wait, and says whether it has locked.
func (l *Locker) TryLock() bool {
	held, err := l.lock.TryAcquire(context.Background())
	if errors.Is(err, ErrBusy) {
		return false
	}
	if err != nil {
		panic(err)
	}
	l.keep(held)
	return true
}

func (l *Locker) keep(held *Held) {
	l.mu.Lock()
	l.held = append(l.held, held)
	l.mu.Unlock()
}

// Unlock gives back what was locked last.
func (l *Locker) Unlock() {
	l.mu.Lock()
	n := len(l.held) - 1
	if n < 0 {
		l.mu.Unlock()
		panic("holdfast: Unlock of '" + l.lock.name + "', which is not locked")
	}
	held := l.held[n]
	l.held = l.held[:n]
	l.mu.Unlock()
	held.Release()
}
