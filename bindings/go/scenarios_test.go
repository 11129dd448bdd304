package holdfast

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The scenarios of bindings/scenarios.md, on the store of HOLDFAST_TEST_URL.
func TestScenarios(t *testing.T) {
	for _, s := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"exclusion_between_processes", exclusionBetweenProcesses},
		{"busy_without_waiting", busyWithoutWaiting},
		{"timeout_leaves_nothing", timeoutLeavesNothing},
		{"cancelled_wait_leaves_nothing", cancelledWaitLeavesNothing},
		{"waiters_come_in_order", waitersComeInOrder},
		{"readers_share_and_a_writer_waits", readersShareAndAWriterWaits},
		{"limit_admits_no_more", limitAdmitsNoMore},
		{"loss_is_told", lossIsTold},
		{"token_rises", tokenRises},
		{"gate_refuses_an_old_sequencer", gateRefusesAnOldSequencer},
		{"check_tells_a_stale_sequencer", checkTellsAStaleSequencer},
		{"inspect_shows_holder_and_waiter", inspectShowsHolderAndWaiter},
		{"break_takes_it_away", breakTakesItAway},
		{"detach_and_adopt", detachAndAdopt},
		{"never_expires_until_released", neverExpiresUntilReleased},
		{"close_wakes_waiters", closeWakesWaiters},
		{"exit_gives_locks_back", exitGivesLocksBack},
		{"ended_handles_are_refused", endedHandlesAreRefused},
		{"a_thousand_waiters_in_twenty_threads", aThousandWaitersInTwentyThreads},
		{"every_code_is_mapped_and_names_hold_any_byte", everyCodeIsMappedAndNamesHoldAnyByte},
	} {
		t.Run(s.name, s.run)
	}
}

var bg = context.Background()

// testURL is the store of this run; memory:// and sqlite: get a place of their own.
var testURL = func() string {
	switch url := os.Getenv("HOLDFAST_TEST_URL"); url {
	case "":
		return "memory://go-tests"
	default:
		return url
	}
}()

// lockName is one that no earlier run has left behind.
func lockName(t *testing.T) string { return fmt.Sprintf("go/%s/%d", t.Name(), os.Getpid()) }

func client(t *testing.T) *Client {
	t.Helper()
	c, err := Open(testURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func acquire(t *testing.T, c *Client, name string, options ...Option) *Held {
	t.Helper()
	held, err := c.Acquire(bg, name, options...)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func release(t *testing.T, held *Held) {
	t.Helper()
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v instead of: %v", err, want)
	}
}

// await polls for what no event tells, with a deadline.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

func entries(t *testing.T, c *Client, name string) []Entry {
	t.Helper()
	found, err := c.Inspect(bg, Query{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func awaitWaiters(t *testing.T, c *Client, name string, want int) {
	t.Helper()
	await(t, fmt.Sprintf("%d waiters", want), func() bool {
		waiting := 0
		for _, e := range entries(t, c, name) {
			if e.Place == PlaceWaiting {
				waiting++
			}
		}
		return waiting == want
	})
}

func needs(t *testing.T, c *Client, wanted Capability) {
	t.Helper()
	if missing := wanted &^ c.Capabilities(); missing != 0 {
		t.Skipf("the store cannot: %v", missing)
	}
}

// child is this program again, which plays a role of TestMain and answers line by line.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  interface{ Close() error }
	out *bufio.Scanner
}

func start(t *testing.T, role, name string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HOLDFAST_TEST_ROLE="+role, "HOLDFAST_TEST_NAME="+name, "HOLDFAST_TEST_URL="+testURL)
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t, cmd, in, bufio.NewScanner(out)}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	return c
}

func (c *child) says(want string) {
	c.t.Helper()
	if !c.out.Scan() || c.out.Text() != want {
		c.t.Fatalf("the other process says %q instead of %q", c.out.Text(), want)
	}
}

func (c *child) end() {
	c.in.Close()
	c.cmd.Wait()
}

func exclusionBetweenProcesses(t *testing.T) {
	c, name := client(t), lockName(t)
	needs(t, c, CanProcess)
	held := acquire(t, c, name)
	other := start(t, "try", name)
	other.says("HF_BUSY")
	awaitWaiters(t, c, name, 1)
	release(t, held)
	other.says("held")
	_, err := c.Acquire(bg, name, Timeout(0))
	wantError(t, err, ErrBusy)
	other.end()
	release(t, acquire(t, c, name, Timeout(0)))
}

func busyWithoutWaiting(t *testing.T) {
	c, name := client(t), lockName(t)
	held := acquire(t, c, name)
	_, err := c.Lock(name).TryAcquire(bg)
	wantError(t, err, ErrBusy)
	if e := (*Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Error(), name) || !e.Retriable {
		t.Fatalf("%#v", err)
	}
	release(t, held)
}

func timeoutLeavesNothing(t *testing.T) {
	c, name := client(t), lockName(t)
	held := acquire(t, c, name)
	_, err := c.Acquire(bg, name, Timeout(30*time.Millisecond))
	wantError(t, err, ErrTimeout)
	ctx, cancel := context.WithTimeout(bg, 30*time.Millisecond)
	defer cancel()
	_, err = c.Acquire(ctx, name)
	wantError(t, err, context.DeadlineExceeded)
	if found := entries(t, c, name); len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	release(t, held)
	if found := entries(t, c, name); len(found) != 0 {
		t.Fatalf("%+v", found)
	}
}

func cancelledWaitLeavesNothing(t *testing.T) {
	c, name := client(t), lockName(t)
	held := acquire(t, c, name)
	ctx, cancel := context.WithCancel(bg)
	failed := make(chan error)
	go func() {
		_, err := c.Acquire(ctx, name)
		failed <- err
	}()
	awaitWaiters(t, c, name, 1)
	cancel()
	err := <-failed
	wantError(t, err, context.Canceled)
	wantError(t, err, ErrCancelled)
	if found := entries(t, c, name); len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	_, err = c.Acquire(ctx, name) // over before it begins
	wantError(t, err, context.Canceled)
	release(t, held)
}

func waitersComeInOrder(t *testing.T) {
	c, name := client(t), lockName(t)
	needs(t, c, CanQueue)
	held := acquire(t, c, name)
	came := make(chan int, 5)
	var all sync.WaitGroup
	for i := range 5 {
		all.Add(1)
		go func() {
			defer all.Done()
			held, err := c.Acquire(bg, name)
			if err != nil {
				t.Error(err)
				return
			}
			came <- i
			held.Release()
		}()
		awaitWaiters(t, c, name, i+1)
	}
	release(t, held)
	all.Wait()
	for i := range 5 {
		if got := <-came; got != i {
			t.Fatalf("waiter %d came as number %d", got, i)
		}
	}
}

func readersShareAndAWriterWaits(t *testing.T) {
	c, name := client(t), lockName(t)
	needs(t, c, CanShare)
	one, two := acquire(t, c, name, Shared()), acquire(t, c, name, Shared())
	_, err := c.Acquire(bg, name, Timeout(0))
	wantError(t, err, ErrBusy)
	wrote := make(chan error)
	go func() {
		held, err := c.Acquire(bg, name)
		if err == nil {
			err = held.Release()
		}
		wrote <- err
	}()
	awaitWaiters(t, c, name, 1)
	_, err = c.Acquire(bg, name, Shared(), Timeout(0)) // the writer stops later readers
	wantError(t, err, ErrBusy)
	release(t, one)
	release(t, two)
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
}

func limitAdmitsNoMore(t *testing.T) {
	c, name := client(t), lockName(t)
	needs(t, c, CanLimit)
	one, two := acquire(t, c, name, Limit(2)), acquire(t, c, name, Limit(2))
	_, err := c.Acquire(bg, name, Limit(2), Timeout(0))
	wantError(t, err, ErrBusy)
	release(t, one)
	release(t, acquire(t, c, name, Limit(2), Timeout(0)))
	release(t, two)
}

func lossIsTold(t *testing.T) {
	c, name := client(t), lockName(t)
	held := acquire(t, c, name, TTL(300*time.Millisecond), ByHand())
	ctx, lost := held.Context(), held.Lost()
	if held.State() != StateHeld || held.Remaining() <= 0 || ctx.Err() != nil {
		t.Fatal("it is lost at once")
	}
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the context does not end")
	}
	<-lost
	wantError(t, context.Cause(ctx), ErrLost)
	if held.State() != StateLost || held.Remaining() != 0 || held.Cause() != CauseExpired {
		t.Fatal(held.State(), held.Remaining(), held.Cause())
	}
	wantError(t, held.Renew(), ErrLost)
	wantError(t, held.Release(), ErrStale)
	late := acquire(t, c, name, TTL(300*time.Millisecond), ByHand())
	await(t, "loss", func() bool { return late.State() == StateLost })
	await(t, "context that is asked for late", func() bool { return late.Context().Err() != nil })
	late.Release()
}

func tokenRises(t *testing.T) {
	c, name := client(t), lockName(t)
	needs(t, c, CanToken)
	for last, i := uint64(0), 0; i < 5; i++ {
		held := acquire(t, c, name)
		if held.Token() <= last {
			t.Fatalf("%d after %d", held.Token(), last)
		}
		last = held.Token()
		release(t, held)
	}
}

func sequencer(t *testing.T, held *Held) string {
	t.Helper()
	s, err := held.Sequencer()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func gateRefusesAnOldSequencer(t *testing.T) {
	c, name := client(t), lockName(t)
	needs(t, c, CanToken)
	gate, err := NewGate()
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = gate.Levels(name)
	wantError(t, err, ErrNotFound)
	held := acquire(t, c, name)
	old := sequencer(t, held)
	release(t, held)
	held = acquire(t, c, name)
	defer held.Release()
	for _, err := range []error{gate.Pass(old), gate.Pass(sequencer(t, held))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, gate.Pass(old), ErrStale)
	wantError(t, gate.Pass("nonsense"), ErrInvalid)
	exclusive, highest, err := gate.Levels(name)
	if err != nil || exclusive != held.Token() || highest != held.Token() {
		t.Fatal(exclusive, highest, err)
	}
	restarted, _ := NewGate()
	if err := restarted.Restore(name, exclusive, highest); err != nil {
		t.Fatal(err)
	}
	wantError(t, restarted.Pass(old), ErrStale)
}

func checkTellsAStaleSequencer(t *testing.T) {
	c, name := client(t), lockName(t)
	needs(t, c, CanCheck)
	held := acquire(t, c, name)
	s := sequencer(t, held)
	if err := c.Check(bg, s); err != nil {
		t.Fatal(err)
	}
	release(t, held)
	wantError(t, c.Check(bg, s), ErrStale)
	wantError(t, c.Check(bg, "nonsense"), ErrInvalid)
}

func inspectShowsHolderAndWaiter(t *testing.T) {
	c, name := client(t), lockName(t)
	held := acquire(t, c, name, Note("the holder"))
	ctx, cancel := context.WithCancel(bg)
	failed := make(chan error)
	go func() {
		_, err := c.Acquire(ctx, name, Note("the waiter"))
		failed <- err
	}()
	awaitWaiters(t, c, name, 1)
	found := entries(t, c, name)
	holder, waiter := found[0], found[1]
	if holder.Name != name || holder.Place != PlaceInside || holder.Note != "the holder" || holder.Ticket != held.Ticket() ||
		holder.Token != held.Token() || holder.PID != os.Getpid() || holder.TTL != 30*time.Second {
		t.Errorf("%+v", holder)
	}
	if waiter.Place != PlaceWaiting || waiter.Position != 1 || waiter.Note != "the waiter" {
		t.Errorf("%+v", waiter)
	}
	byPrefix, err := c.Inspect(bg, Query{Prefix: name[:len(name)-1]})
	if err != nil || len(byPrefix) != 2 {
		t.Error(byPrefix, err)
	}
	cancel()
	<-failed
	release(t, held)
}

func breakTakesItAway(t *testing.T) {
	c, name := client(t), lockName(t)
	needs(t, c, CanBreak)
	held := acquire(t, c, name, TTL(time.Second))
	ticket := held.Ticket()
	if err := client(t).Break(bg, name, ticket, true); err != nil {
		t.Fatal(err)
	}
	release(t, acquire(t, c, name, Timeout(10*time.Second)))
	select {
	case <-held.Lost():
	case <-time.After(20 * time.Second):
		t.Fatal("the holder is not told")
	}
	if cause := held.Cause(); cause != CauseGone && cause != CauseExpired {
		t.Error(cause)
	}
	wantError(t, c.Break(bg, name, ticket, true), ErrNotFound)
	wantError(t, held.Release(), ErrStale)
}

func detachAndAdopt(t *testing.T) {
	c, name := client(t), lockName(t)
	needs(t, c, CanDetach)
	held := acquire(t, c, name, TTL(5*time.Second))
	token := held.Token()
	ticket, err := held.Detach()
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, held.Release(), ErrStale)
	_, err = c.Acquire(bg, name, Timeout(0))
	wantError(t, err, ErrBusy)
	other := client(t)
	held, err = other.Adopt(bg, name, ticket)
	if err != nil {
		t.Fatal(err)
	}
	if held.Token() != token || held.Ticket() != ticket || held.State() != StateHeld {
		t.Fatal(held.Token(), token)
	}
	if err := c.Break(bg, name, ticket, true); err != nil { // what was adopted tells its loss, too
		t.Fatal(err)
	}
	select {
	case <-held.Context().Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the loss is not told")
	}
	wantError(t, held.Release(), ErrStale)
	_, err = c.Adopt(bg, name, ticket)
	wantError(t, err, ErrStale)
}

func neverExpiresUntilReleased(t *testing.T) {
	c, name := client(t), lockName(t)
	needs(t, c, CanNever)
	held := acquire(t, c, name, NeverExpires())
	if held.Remaining() != Forever || entries(t, c, name)[0].TTL != Forever {
		t.Fatal(held.Remaining())
	}
	release(t, held)
	release(t, acquire(t, c, name, Timeout(0)))
}

func closeWakesWaiters(t *testing.T) {
	c, name := client(t), lockName(t)
	other, err := Open(testURL)
	if err != nil {
		t.Fatal(err)
	}
	held, lost := acquire(t, c, name), acquire(t, other, name+"/mine")
	failed := make(chan error)
	for range 20 {
		go func() {
			_, err := other.Acquire(bg, name)
			failed <- err
		}()
	}
	awaitWaiters(t, c, name, 20)
	ctx := lost.Context()
	other.Close()
	for range 20 {
		wantError(t, <-failed, ErrClosed)
	}
	wantError(t, context.Cause(ctx), ErrLost)
	if found := entries(t, c, name); len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	release(t, acquire(t, c, name+"/mine", Timeout(0)))
	release(t, held)
	left := client(t)
	acquire(t, left, name) // and what a client holds is given back by its close
	left.Close()
	release(t, acquire(t, c, name, Timeout(0)))
}

func exitGivesLocksBack(t *testing.T) {
	c, name := client(t), lockName(t)
	needs(t, c, CanProcess)
	for _, role := range []string{"leave", "exit"} { // by a deferred Close, by CloseAll
		other := start(t, role, name)
		other.says("held")
		other.cmd.Wait()
		release(t, acquire(t, c, name, Timeout(5*time.Second)))
	}
}

func endedHandlesAreRefused(t *testing.T) {
	c, name := client(t), lockName(t)
	other, err := Open(testURL)
	if err != nil {
		t.Fatal(err)
	}
	released, closed, lost := acquire(t, c, name), acquire(t, other, name+"/closed"),
		acquire(t, c, name+"/lost", TTL(200*time.Millisecond), ByHand())
	release(t, released)
	other.Close()
	<-lost.Lost()
	for range 2 {
		for held, want := range map[*Held]Code{released: ErrStale, closed: ErrClosed, lost: ErrLost} {
			wantError(t, held.Renew(), want)
			_, err := held.Sequencer()
			wantError(t, err, want)
			_, err = held.Detach()
			wantError(t, err, want)
			if held.State() != StateLost || held.Remaining() != 0 || held.Token() != 0 || held.Context().Err() == nil {
				t.Error(want.Name(), held.State(), held.Remaining(), held.Token())
			}
		}
		_, err = other.Acquire(bg, name)
		wantError(t, err, ErrClosed)
		_, err = other.Inspect(bg, Query{})
		wantError(t, err, ErrClosed)
		wantError(t, released.Release(), ErrStale)
		if other.Capabilities() != 0 || other.Close() != nil {
			t.Error("a closed client can do something")
		}
	}
	wantError(t, closed.Release(), ErrClosed)
	wantError(t, lost.Release(), ErrStale)
	for _, held := range []*Held{closed, lost} { // and given back after that
		wantError(t, held.Release(), ErrStale)
		wantError(t, held.Renew(), ErrStale)
		if held.Token() != 0 || held.Ticket() != "" {
			t.Error("something is left of it")
		}
	}
}

func threads(t *testing.T) int {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip(err)
	}
	return len(tasks)
}

func aThousandWaitersInTwentyThreads(t *testing.T) {
	if os.Getenv("HOLDFAST_TEST_ROLE") == "" { // in a process that has no threads of other tests
		cmd := exec.Command(os.Args[0], "-test.run=^TestScenarios$/^a_thousand_waiters_in_twenty_threads$")
		cmd.Env = append(os.Environ(), "HOLDFAST_TEST_ROLE=crowd", "HOLDFAST_TEST_NAME="+lockName(t))
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return
	}
	const crowd = 1000
	c, name := client(t), os.Getenv("HOLDFAST_TEST_NAME")
	held := acquire(t, c, name)
	ctx, cancel := context.WithCancel(bg)
	var all sync.WaitGroup
	var turns, cancelled atomic.Int32
	for i := range crowd {
		all.Add(1)
		go func() {
			defer all.Done()
			mine := bg
			if i%2 == 0 {
				mine = ctx
			}
			held, err := c.Acquire(mine, name)
			switch {
			case err == nil:
				turns.Add(1)
				err = held.Release()
			case errors.Is(err, context.Canceled):
				cancelled.Add(1)
				err = nil
			}
			if err != nil {
				t.Error(err)
			}
		}()
	}
	awaitWaiters(t, c, name, crowd)
	waiting := threads(t)
	cancel()
	awaitWaiters(t, c, name, crowd/2)
	release(t, held)
	all.Wait()
	if turns.Load() != crowd/2 || cancelled.Load() != crowd/2 || len(entries(t, c, name)) != 0 {
		t.Error(turns.Load(), cancelled.Load(), entries(t, c, name))
	}
	if after := threads(t); waiting > 20 || after > 20 {
		t.Errorf("%d threads while they waited, %d at the end", waiting, after)
	}
}

func everyCodeIsMappedAndNamesHoldAnyByte(t *testing.T) {
	seen := map[string]bool{}
	for code := Code(-1); int(-code) <= len(codeRows); code-- {
		name := code.Name()
		if seen[name] || code.Error() != codeText(code) || name != codeName(code) || code.ExitStatus() != codeExitStatus(code) {
			t.Error(int(code), name, code.Error(), code.ExitStatus())
		}
		seen[name] = true
		if !errors.Is(&Error{Code: code}, code) || errors.Is(&Error{Code: code}, code-1) {
			t.Error("errors.Is", name)
		}
	}
	if next := Code(-len(codeRows) - 1); codeName(next) != codeName(-9999) {
		t.Errorf("%s is not in the table", codeName(next))
	}
	c := client(t)
	for _, name := range []string{"a\x00b/" + lockName(t), "\xff\xfe/" + lockName(t), "Ünïcode 锁/" + lockName(t), strings.Repeat("x", 512)} {
		held := acquire(t, c, name)
		if held.Name() != name || entries(t, c, name)[0].Name != name {
			t.Errorf("%q", held.Name())
		}
		_, err := c.Acquire(bg, name, Timeout(0))
		wantError(t, err, ErrBusy)
		release(t, held)
	}
	for _, name := range []string{"", strings.Repeat("x", 513)} {
		_, err := c.Acquire(bg, name)
		wantError(t, err, ErrInvalid)
	}
}
