// What a user of the module does: use DIRECTORY.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"holdfast.example/holdfast"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	locks, err := holdfast.Open("sqlite:" + os.Args[1] + "/locks.db")
	must(err)
	defer locks.Close()
	held, err := locks.Acquire(context.Background(), "a")
	must(err)
	must(held.Release())
	fmt.Println("#", runtime.Version()+", libholdfast", holdfast.Version())
}
