//go:build cgo

package holdfast

// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
)

// Error is the code's own sentence, without what happened in this case.
func (c Code) Error() string {
	if row, ok := codeRows[c]; ok {
		return row.text
	}
	return fmt.Sprintf("unknown code %d", int(c))
}

// Name is the code's name in C, such as HF_BUSY.
func (c Code) Name() string {
	if row, ok := codeRows[c]; ok {
		return row.name
	}
	return "HF_?"
}

// ExitStatus is that of the command holdfast for this code.
func (c Code) ExitStatus() int {
	if row, ok := codeRows[c]; ok {
		return row.exitStatus
	}
	return 70
}

// Error is what every call of this package returns. errors.Is compares its code, and the context's error if the
// context ended the call.
type Error struct {
	Code      Code
	Retriable bool // the same call may succeed later
	StoreCode int  // the store's own number (SQLite result code, errno, ...), 0 if none
	// MayHold is for ErrUnknown: how long the store may hold the lock for us; Forever: until somebody breaks it.
	MayHold time.Duration
	text    string
	cause   error
}

// Forever is a duration without an end.
const Forever time.Duration = math.MaxInt64

// Error is one line, outermost first: "acquire 'x': sqlite: disk is full".
func (e *Error) Error() string { return e.text }

// Unwrap gives the code, and the context's error if that ended the call.
func (e *Error) Unwrap() []error {
	if e.cause != nil {
		return []error{e.Code, e.cause}
	}
	return []error{e.Code}
}

// Timeout says, as in package net, whether time was up.
func (e *Error) Timeout() bool { return e.Code == ErrTimeout || e.cause == context.DeadlineExceeded }

// fail makes the error of a call that C has refused.
func fail(code C.int, err *C.hf_error) *Error {
	if C.int(err.code) != code { // a call that fills in nothing
		return &Error{Code: Code(code), text: Code(code).Error()}
	}
	return &Error{
		Code: Code(code), Retriable: err.retriable != 0, StoreCode: int(err.store_code),
		MayHold: duration(err.may_hold_ms), text: C.GoString(&err.text[0]),
	}
}

// failed is nil if the call was well.
func failed(code C.int, err *C.hf_error) *Error {
	if code == C.HF_OK {
		return nil
	}
	return fail(code, err)
}

func failText(code Code, format string, args ...any) *Error {
	return &Error{Code: code, text: fmt.Sprintf(format, args...)}
}

// ended is the error of a call whose context was over before it began.
func ended(ctx context.Context, what string) *Error {
	return &Error{Code: ErrCancelled, text: what + ": " + ctx.Err().Error(), cause: ctx.Err()}
}

// because adds the context's error, if that is why. Our clock may be ahead of the context's by a moment.
func (e *Error) because(ctx context.Context, t *terms) *Error {
	switch {
	case e.Code == ErrCancelled:
		e.cause = ctx.Err()
	case e.Code == ErrTimeout && t.byContext:
		e.cause = context.DeadlineExceeded
	}
	return e
}

// duration is the Go form of milliseconds of which -1 means for ever.
func duration(ms C.int64_t) time.Duration {
	if ms < 0 || int64(ms) > int64(Forever/time.Millisecond) {
		return Forever
	}
	return time.Duration(ms) * time.Millisecond
}

// milliseconds rounds up: a lease or a wait is never shorter than asked for. What is negative stays an error.
func milliseconds(d time.Duration) C.int64_t {
	switch {
	case d < 0:
		return -2 // -1 has a meaning of its own
	case d == Forever:
		return math.MaxInt64 / 2000000
	}
	return C.int64_t((d-1)/time.Millisecond) + C.int64_t(min(d, 1))
}

// String names what it has: "shared limit lease".
func (c Capability) String() string {
	var words []string
	for bit, word := range capabilityNames {
		if c&(1<<bit) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// What the library itself says of a code: the tests compare the table with it.
func codeName(c Code) string    { return C.GoString(C.hf_code_name(C.int(c))) }
func codeText(c Code) string    { return C.GoString(C.hf_code_text(C.int(c))) }
func codeExitStatus(c Code) int { return int(C.hf_code_exit_status(C.int(c))) }
