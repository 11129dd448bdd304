package holdfast

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"
)

// TestMain is also the other process of some scenarios.
func TestMain(m *testing.M) {
	role, name := os.Getenv("HOLDFAST_TEST_ROLE"), os.Getenv("HOLDFAST_TEST_NAME")
	if role == "" || role == "crowd" {
		os.Exit(m.Run())
	}
	play(role, name)
}

func play(role, name string) {
	c, err := Open(testURL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	if role == "try" {
		if _, err := c.Acquire(bg, name, Timeout(0)); err != nil {
			fmt.Println(err.(*Error).Code.Name())
		}
	}
	held, err := c.Acquire(bg, name, TTL(10*time.Minute))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("held")
	switch role {
	case "try":
		io.Copy(io.Discard, os.Stdin)
		held.Release()
	case "exit":
		CloseAll()
		os.Exit(0)
	}
}
