package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast.example/holdfast"
)

func writeInvoice(ctx context.Context, fence uint64) error { return ctx.Err() }

// What README.md begins with.
func firstLines(ctx context.Context) error {
	locks, err := holdfast.Open("") // HOLDFAST_URL, such as redis://db/0; or else a file of your own
	if err != nil {
		return err
	}
	defer locks.Close()
	held, err := locks.Acquire(ctx, "invoice/123") // errors.Is(err, holdfast.ErrBusy), ctx.Err()
	if err != nil {
		return err
	}
	defer held.Release()
	return writeInvoice(held.Context(), held.Token()) // the context ends when the lock is lost

}

func TestREADME(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(source), "func firstLines(ctx context.Context) error {\n")
	body, _, _ = strings.Cut(body, "\n}\n")
	body = strings.TrimSpace(strings.ReplaceAll("\n"+body, "\n\t", "\n"))
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(readme), "```go\n")
	block, _, _ = strings.Cut(block, "```")
	if strings.TrimSpace(block) != body {
		t.Errorf("README.md does not begin with what is compiled here:\n%s", body)
	}
	url := os.Getenv("HOLDFAST_TEST_URL")
	if url == "" {
		url = "memory://"
	}
	t.Setenv("HOLDFAST_URL", url)
	if err := firstLines(context.Background()); err != nil {
		t.Error(err)
	}
}

func Example() {
	locks, err := holdfast.Open("memory://example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close()
	held, err := locks.Acquire(context.Background(), "invoice/123")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer held.Release()
	_, err = locks.Lock("invoice/123").TryAcquire(context.Background())
	fmt.Println(held.State(), errors.Is(err, holdfast.ErrBusy))
	fmt.Println(err)
	// Output:
	// held true
	// acquire 'invoice/123': somebody else holds it
}

func ExampleLock_Do() {
	locks, _ := holdfast.Open("memory://example")
	defer locks.Close()
	report := locks.Lock("report", holdfast.TTL(10*time.Second), holdfast.Note("nightly"))
	err := report.Do(context.Background(), func(ctx context.Context, held *holdfast.Held) error {
		fmt.Println("alone, with a token:", held.Token() > 0)
		return ctx.Err() // ends when the lock is lost
	})
	fmt.Println(err)
	// Output:
	// alone, with a token: true
	// <nil>
}

func ExampleGate() {
	locks, _ := holdfast.Open("memory://example")
	defer locks.Close()
	gate, _ := holdfast.NewGate() // beside the resource
	var proofs []string
	for range 2 {
		held, _ := locks.Acquire(context.Background(), "disk")
		proof, _ := held.Sequencer()
		proofs = append(proofs, proof)
		held.Release()
	}
	fmt.Println(gate.Pass(proofs[1]), errors.Is(gate.Pass(proofs[0]), holdfast.ErrStale))
	// Output: <nil> true
}

func ExampleLock_Locker() {
	locks, _ := holdfast.Open("memory://example")
	defer locks.Close()
	mu := locks.Lock("counter").Locker() // a sync.Locker
	mu.Lock()
	defer mu.Unlock()
	fmt.Println("locked")
	// Output: locked
}
