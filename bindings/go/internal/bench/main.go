//go:build cgo && !holdfast_system

// Bench measures what a crossing costs: acquire and release of a free lock by Go and by C, in turns, in one process.
//
//	go run ./internal/bench [-rounds 25] [-pairs N] URL
package main

// #cgo CFLAGS: -I${SRCDIR}/../../csrc
// #include <holdfast.h>
// #include <stdlib.h>
// static int pairs(hf_client *client, int n)
// {
//     for (int i = 0; i < n; i++) {
//         hf_lock *lock;
//         int r = hf_acquire(client, "bench", HF_NTS, NULL, &lock, NULL);
//         if (r == HF_OK)
//             r = hf_lock_release(lock, NULL);
//         if (r != HF_OK)
//             return r;
//     }
//     return HF_OK;
// }
import "C"

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"holdfast.example/holdfast"
)

type sample struct{ wall, processor time.Duration }

func processor() time.Duration {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func measure(n int, run func(n int)) sample {
	wall, cpu := time.Now(), processor()
	run(n)
	return sample{time.Since(wall) / time.Duration(n), (processor() - cpu) / time.Duration(n)}
}

func median(samples []sample, of func(sample) time.Duration) float64 {
	var values []time.Duration
	for _, s := range samples {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return float64(values[len(values)/2].Nanoseconds()) / 1000
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	rounds, pairs := flag.Int("rounds", 25, "rounds, in turns"), flag.Int("pairs", 1000, "pairs in a round")
	flag.Parse()
	url := flag.Arg(0)
	cURL := C.CString(url)
	defer C.free(unsafe.Pointer(cURL))
	var client *C.hf_client
	if r := C.hf_open(cURL, nil, &client, nil); r != C.HF_OK {
		check(holdfast.Code(r))
	}
	defer C.hf_close(client)
	locks, err := holdfast.Open(url)
	check(err)
	defer locks.Close()
	cancellable, cancel := context.WithCancel(context.Background())
	defer cancel()
	byGo := func(ctx context.Context) func(n int) {
		return func(n int) {
			for range n {
				held, err := locks.Acquire(ctx, "bench")
				check(err)
				check(held.Release())
			}
		}
	}
	runs := []struct {
		name string
		run  func(n int)
	}{
		{"C", func(n int) {
			if r := C.pairs(client, C.int(n)); r != C.HF_OK {
				check(holdfast.Code(r))
			}
		}},
		{"Go", byGo(context.Background())},
		{"Go, a context that can end", byGo(cancellable)},
	}
	samples := make([][]sample, len(runs))
	for round := range *rounds + 1 {
		for i := range runs {
			turn := (i + round) % len(runs) // nobody always comes first
			if s := measure(*pairs, runs[turn].run); round > 0 {
				samples[turn] = append(samples[turn], s)
			}
		}
	}
	fmt.Printf("| %s | us | ratio | processor us | ratio |\n|---|---:|---:|---:|---:|\n", url)
	wall := func(s sample) time.Duration { return s.wall }
	cpu := func(s sample) time.Duration { return s.processor }
	for i := range runs {
		fmt.Printf("| %s | %.2f | %.2f | %.2f | %.2f |\n", runs[i].name, median(samples[i], wall),
			median(samples[i], wall)/median(samples[0], wall), median(samples[i], cpu),
			median(samples[i], cpu)/median(samples[0], cpu))
	}
}
