// A contender of the Go package concurrency, for tests/etcd/goclient.sh.
//
//	mutex ENDPOINT lock|trylock|rlock|wlock NAME TTL
//
// Prints "held REVISION" when it is inside and leaves when its standard input ends. For bench/etcd.c:
//
//	mutex ENDPOINT pairs NAME TTL
//
// reads counts, a line each, takes and releases the lock so often, and prints the microseconds of one.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// enter takes the lock and returns its revision, if it has one, and how to leave.
func enter(session *concurrency.Session, how, name string) (int64, func() error) {
	ctx := context.Background()
	switch how {
	case "rlock":
		m := recipe.NewRWMutex(session, name)
		must(m.RLock())
		return 0, m.RUnlock
	case "wlock":
		m := recipe.NewRWMutex(session, name)
		must(m.Lock())
		return 0, m.Unlock
	}
	m := concurrency.NewMutex(session, name)
	if how == "trylock" {
		must(m.TryLock(ctx))
	} else {
		must(m.Lock(ctx))
	}
	return m.Header().Revision, func() error { return m.Unlock(ctx) }
}

func pairs(session *concurrency.Session, name string) {
	ctx := context.Background()
	m := concurrency.NewMutex(session, name)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		count, err := strconv.Atoi(lines.Text())
		must(err)
		start := time.Now()
		for i := 0; i < count; i++ {
			must(m.Lock(ctx))
			must(m.Unlock(ctx))
		}
		fmt.Println(float64(time.Since(start).Nanoseconds()) / 1e3 / float64(count))
	}
}

func main() {
	ttl, err := strconv.Atoi(os.Args[4])
	must(err)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Args[1]}})
	must(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	must(err)
	if os.Args[2] == "pairs" {
		pairs(session, os.Args[3])
		return
	}
	revision, leave := enter(session, os.Args[2], os.Args[3])
	fmt.Println("held", revision)
	io.Copy(io.Discard, os.Stdin)
	must(leave())
	must(session.Close())
	must(client.Close())
}
