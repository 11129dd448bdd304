//go:build cgo

// Package holdfast gives Go programs distributed locks (mutex, read-write lock, semaphore), kept in a store that
// you already run: SQLite on one machine; Redis, PostgreSQL, MySQL, etcd, ZooKeeper or Cassandra across many.
//
// A lease makes overlap unlikely; the fencing token makes it harmless. A program that was frozen for longer than
// its lease wakes up believing that it still holds the lock. Where overlap would corrupt data, pass [Held.Token] or
// [Held.Sequencer] to the resource, and let the resource refuse old ones ([Gate], [Client.Check]).
//
// # Waiting
//
// Every call that may take time has a [context.Context]. When it ends, a wait is withdrawn: Acquire returns when
// nothing of it is left in the store, which takes a round trip, or one op_timeout if the store does not answer. If
// the lock was granted before the cancellation reached it, Acquire returns it: its [Held.Context] has ended already.
// Waiting goroutines need no threads of their own.
//
// # Ends
//
// Locks are renewed in the background until [Held.Release] or [Client.Close]. Go runs nothing at os.Exit and
// log.Fatal: call [CloseAll] before them, or the locks stay closed until their leases end.
package holdfast
