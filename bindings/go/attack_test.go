package holdfast

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// all runs n goroutines and waits for them.
func all(n int, run func(i int)) {
	var done sync.WaitGroup
	done.Add(n)
	for i := range n {
		go func() {
			defer done.Done()
			run(i)
		}()
	}
	done.Wait()
}

// Bids are cancelled at every moment; nobody is inside beside another, and nothing is left.
func TestCancelledAtEveryMoment(t *testing.T) {
	c, name := client(t), lockName(t)
	var inside, obtained, cancelled atomic.Int32
	all(16, func(int) {
		for range 60 {
			ctx, cancel := context.WithCancel(bg)
			timer := time.AfterFunc(time.Duration(rand.IntN(2000))*time.Microsecond, cancel)
			held, err := c.Acquire(ctx, name)
			switch {
			case err == nil:
				if inside.Add(1) != 1 {
					t.Error("two are inside")
				}
				obtained.Add(1)
				inside.Add(-1)
				if err := held.Release(); err != nil {
					t.Error(err)
				}
				if held.Context().Err() == nil {
					t.Error("the context outlives the lock")
				}
			case errors.Is(err, context.Canceled):
				cancelled.Add(1)
			default:
				t.Error(err)
			}
			timer.Stop()
			cancel()
		}
	})
	if found := entries(t, c, name); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	c.told.Lock()
	defer c.told.Unlock()
	if len(c.grants) != 0 || len(c.releases) != 0 || len(c.entered) != 0 {
		t.Error("tags are left", len(c.grants), len(c.releases), len(c.entered))
	}
	t.Log(obtained.Load(), "obtained,", cancelled.Load(), "cancelled")
}

// The client is closed while everything is done with it: each call returns, nothing hangs, no lock is left.
func TestCloseAtEveryMoment(t *testing.T) {
	watcher, name := client(t), lockName(t)
	for round := range 25 {
		c, err := Open(testURL)
		if err != nil {
			t.Fatal(err)
		}
		all(13, func(i int) {
			if i == 0 {
				time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
				c.Close()
				return
			}
			for {
				held, err := c.Acquire(bg, name)
				if err == nil {
					ctx := held.Context()
					held.State()
					held.Renew()
					if i%3 == 0 {
						c.Inspect(bg, Query{})
					}
					err = held.Release()
					<-ctx.Done()
				}
				if errors.Is(err, ErrClosed) {
					return
				}
				if err != nil && !errors.Is(err, ErrStale) {
					t.Errorf("round %d: %#v", round, err)
					return
				}
			}
		})
	}
	if found := entries(t, watcher, name); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// One handle, and many who use it while others give it back: one of them succeeds.
func TestOneHandleOfMany(t *testing.T) {
	c, name := client(t), lockName(t)
	for range 50 {
		held := acquire(t, c, name)
		var released atomic.Int32
		all(8, func(i int) {
			held.Ticket()
			held.Remaining()
			held.Sequencer()
			held.Err()
			if i%2 == 0 {
				held.Context()
				held.Lost()
			}
			if held.Release() == nil {
				released.Add(1)
			}
			held.State()
			held.Renew()
		})
		if released.Load() != 1 {
			t.Fatal(released.Load(), "releases")
		}
	}
}

func TestAnOwnerEntersAgainAndGoroutinesDoNot(t *testing.T) {
	c, name := client(t), lockName(t)
	owner := NewOwner()
	outer := acquire(t, c, name, Reentrant(owner))
	all(8, func(int) {
		inner, err := c.Acquire(bg, name, Reentrant(owner), Timeout(0))
		if err != nil {
			t.Error(err)
			return
		}
		if inner.Token() != outer.Token() {
			t.Error("another grant")
		}
		if err := inner.Release(); err != nil {
			t.Error(err)
		}
		if outer.State() != StateHeld || outer.Context().Err() != nil {
			t.Error("the outer one is over")
		}
	})
	_, err := c.Acquire(bg, name, Timeout(0))
	wantError(t, err, ErrBusy)
	_, err = c.Acquire(bg, name, Reentrant(NewOwner()), Timeout(0))
	wantError(t, err, ErrBusy)
	release(t, outer)
	release(t, acquire(t, c, name, Timeout(0)))
	_, err = c.Adopt(bg, name, strings.Repeat("1", 32)) // an owner of its own, too
	wantError(t, err, ErrStale)
}

func TestALossReachesWhoEnteredAgain(t *testing.T) {
	c, name := client(t), lockName(t)
	terms := []Option{Reentrant(NewOwner()), TTL(200 * time.Millisecond), ByHand()}
	outer, inner := acquire(t, c, name, terms...), acquire(t, c, name, terms...)
	if err := outer.Release(); err != nil { // counts down
		t.Fatal(err)
	}
	<-inner.Lost()
	wantError(t, inner.Release(), ErrStale)
}

// A lock that becomes garbage is released without anybody waiting, and somebody is warned.
func TestGarbageIsReleasedAndWarnedOf(t *testing.T) {
	warned := make(chan string, 10)
	c, err := Open(testURL, OnLeak(func(name string) { warned <- name }))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	name := lockName(t)
	func() { acquire(t, c, name) }()
	for end := time.Now().Add(20 * time.Second); ; runtime.GC() {
		select {
		case got := <-warned:
			if got != name {
				t.Fatal(got)
			}
		case <-time.After(5 * time.Millisecond):
			if time.Now().After(end) {
				t.Fatal("nobody was warned")
			}
			continue
		}
		break
	}
	release(t, acquire(t, c, name, Timeout(20*time.Second)))
	held := acquire(t, c, name)
	release(t, held)
	runtime.GC()
	runtime.GC()
	if len(warned) != 0 {
		t.Error("warned of a lock that was released")
	}
}

func TestLockerIsASyncLocker(t *testing.T) {
	c, name := client(t), lockName(t)
	var locker sync.Locker = c.Lock(name).Locker()
	count := 0
	all(8, func(int) { // a plain variable: the race detector looks on
		for range 20 {
			locker.Lock()
			count++
			locker.Unlock()
		}
	})
	if count != 160 {
		t.Error(count)
	}
	cond, ready := sync.NewCond(locker), false // who else takes a Locker
	go func() {
		locker.Lock()
		ready = true
		cond.Broadcast()
		locker.Unlock()
	}()
	locker.Lock()
	for !ready {
		cond.Wait()
	}
	if c.Lock(name).Locker().TryLock() {
		t.Error("locked twice")
	}
	locker.Unlock()
	defer func() {
		if recover() == nil {
			t.Error("Unlock of what is not locked does not panic")
		}
	}()
	locker.Unlock()
}

func TestDoTellsOfALoss(t *testing.T) {
	c, name := client(t), lockName(t)
	lock := c.Lock(name, TTL(200*time.Millisecond), ByHand())
	err := lock.Do(bg, func(ctx context.Context, held *Held) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	wantError(t, err, ErrLost)
	wantError(t, err, ErrStale)
	failure := errors.New("mine")
	if err := c.Lock(name).Do(bg, func(context.Context, *Held) error { return failure }); !errors.Is(err, failure) {
		t.Error(err)
	}
}

// A child that is started has none of our descriptors.
func TestDescriptorsEndAtExec(t *testing.T) {
	c := client(t)
	held := acquire(t, c, lockName(t))
	held.Context()
	output, err := exec.Command("ls", "-l", "/proc/self/fd").Output()
	if err != nil {
		t.Skip(err)
	}
	if strings.Contains(string(output), "eventfd") || strings.Contains(string(output), "locks.db") {
		t.Errorf("%s", output)
	}
	release(t, held)
}

func TestBadInputGetsOneSentence(t *testing.T) {
	c := client(t)
	for want, call := range map[string]func() error{
		"the URL must not contain a NUL":  func() error { _, err := Open("memory://a\x00b"); return err },
		"the note must not contain a NUL": func() error { _, err := c.Acquire(bg, "x", Note("a\x00b")); return err },
		"the wait is negative":            func() error { _, err := c.Acquire(bg, "x", Timeout(-1)); return err },
		"the ttl must be":                 func() error { _, err := c.Acquire(bg, "x", TTL(-time.Millisecond)); return err },
		"nosuch":                          func() error { _, err := Open("nosuch://x"); return err },
	} {
		err := call()
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, not: %s", err, want)
		}
	}
	if err := checkVersion("0.999.1"); !errors.Is(err, ErrUnsupported) || checkVersion(Version()) != nil {
		t.Error(err)
	}
	stores, err := Stores()
	if err != nil || len(stores) < 2 {
		t.Error(stores, err)
	}
	findings, err := c.Diagnose(bg)
	if err != nil || len(findings) == 0 {
		t.Error(findings, err)
	}
	if err := c.Setup(bg); err != nil {
		t.Error(err)
	}
	if _, err := c.Purge(bg, time.Hour); err != nil {
		t.Error(err)
	}
	if s := (CanShare | CanToken).String(); s != "shared token" {
		t.Error(s)
	}
}

// A sum of memory that only grows is a leak; the C heap is looked at by running this under a leak checker.
func TestNothingGrows(t *testing.T) {
	if testing.Short() || !strings.HasPrefix(testURL, "memory:") {
		t.Skip("once is enough, on memory://")
	}
	c, name := client(t), lockName(t)
	resident := func() int {
		data, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Skip(err)
		}
		runtime.GC()
		pages := 0
		for _, digit := range strings.Fields(string(data))[1] {
			pages = pages*10 + int(digit-'0')
		}
		return pages * os.Getpagesize()
	}
	round := func(n int) {
		for range n {
			held := acquire(t, c, name, Note("x"))
			held.Context()
			c.Acquire(bg, name, Timeout(0))
			c.Inspect(bg, Query{})
			release(t, held)
		}
	}
	round(3000)
	before := resident()
	round(30000)
	if grown := resident() - before; grown > 8<<20 {
		t.Errorf("%d bytes more", grown)
	}
}
