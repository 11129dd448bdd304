//! libholdfast as it is in C. What each function does, and when it may be called, stands in `holdfast.h`; the crate
//! `holdfast` is the safe one.
//!
//! Written by hand; `tests/layout.rs` compares every structure with the header.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_long, c_void};

#[cfg(feature = "bundled-sqlite")]
extern crate libsqlite3_sys as _;

macro_rules! opaque {
    ($($name:ident)*) => {$(
        /// Only ever seen behind a pointer.
        #[repr(C)]
        pub struct $name {
            _nothing: [u8; 0],
            _not_send: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
        }
    )*};
}
opaque! { hf_client hf_lock hf_cancel hf_gate hf_view }

pub const HF_OK: c_int = 0;
pub const HF_EVENT_ACQUIRED: c_int = 1;
pub const HF_EVENT_FAILED: c_int = 2;
pub const HF_EVENT_RELEASED: c_int = 3;
pub const HF_EVENT_AT_RISK: c_int = 4;
pub const HF_EVENT_LOST: c_int = 5;
pub const HF_EVENT_WANTED: c_int = 6;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct hf_error {
    pub code: c_int,
    pub retriable: c_int,
    pub store_code: c_long,
    pub may_hold_ms: i64,
    pub text: [c_char; 400],
}

#[repr(C)]
pub struct hf_client_options {
    pub size: usize,
    pub program: *const c_char,
    pub modules: *const c_char,
    pub metrics: i64,
    pub on_log: Option<hf_log_callback>,
    pub log_arg: *mut c_void,
}

#[repr(C)]
pub struct hf_log_entry {
    pub kind: c_int,
    pub level: c_int,
    pub cause: c_int,
    pub code: c_int,
    pub name: *const c_char,
    pub name_len: usize,
    pub text: *const c_char,
}

pub type hf_log_callback = unsafe extern "C" fn(entry: *const hf_log_entry, arg: *mut c_void);

pub type hf_lock_callback = unsafe extern "C" fn(lock: *mut hf_lock, cause: c_int, arg: *mut c_void);
pub type hf_wait_callback = unsafe extern "C" fn(position: usize, arg: *mut c_void);

#[repr(C)]
pub struct hf_options {
    pub size: usize,
    pub mode: c_int,
    pub limit: u32,
    pub ttl_ms: i64,
    pub wait_ms: i64,
    pub lock_delay_ms: i64,
    pub max_hold_ms: i64,
    pub reentrant: c_int,
    pub owner: u64,
    pub by_hand: c_int,
    pub confirmed: c_int,
    pub note: *const c_char,
    pub cancel: *mut hf_cancel,
    pub on_at_risk: Option<hf_lock_callback>,
    pub on_lost: Option<hf_lock_callback>,
    pub on_wait: Option<hf_wait_callback>,
    pub arg: *mut c_void,
    pub patience_ms: i64,
    pub on_wanted: Option<hf_lock_callback>,
    pub wanted: i64,
}

#[repr(C)]
pub struct hf_event {
    pub size: usize,
    pub kind: c_int,
    pub cause: c_int,
    pub tag: u64,
    pub lock: *mut hf_lock,
    pub err: hf_error,
}

#[repr(C)]
pub struct hf_entry {
    pub name: *const c_char,
    pub name_len: usize,
    pub place: c_int,
    pub position: usize,
    pub mode: c_int,
    pub limit: u32,
    pub ticket: [c_char; 33],
    pub generation: u64,
    pub ttl_ms: i64,
    pub lock_delay_ms: i64,
    pub age_ms: i64,
    pub remaining_ms: i64,
    pub claimed: c_int,
    pub host: *const c_char,
    pub user: *const c_char,
    pub program: *const c_char,
    pub note: *const c_char,
    pub pid: i64,
}

#[repr(C)]
pub struct hf_query {
    pub size: usize,
    pub name: *const c_char,
    pub name_len: usize,
    pub prefix: *const c_char,
    pub prefix_len: usize,
    pub older_than_ms: i64,
    pub value: i64,
}

#[repr(C)]
pub struct hf_store_info {
    pub name: *const c_char,
    pub schemes: *const c_char,
    pub summary: *const c_char,
    pub capabilities: u32,
    pub options: *const c_char,
    pub ddl: *const c_char,
    pub missing: *const c_char,
}

pub type hf_finding_callback =
    unsafe extern "C" fn(level: c_int, clause: *const c_char, text: *const c_char, arg: *mut c_void);
pub type hf_store_callback = unsafe extern "C" fn(info: *const hf_store_info, arg: *mut c_void);

extern "C" {
    pub fn hf_version() -> *const c_char;
    pub fn hf_code_name(code: c_int) -> *const c_char;
    pub fn hf_code_text(code: c_int) -> *const c_char;
    pub fn hf_code_exit_status(code: c_int) -> c_int;
    pub fn hf_cause_text(cause: c_int) -> *const c_char;

    pub fn hf_open(
        url: *const c_char,
        opt: *const hf_client_options,
        ret_client: *mut *mut hf_client,
        err: *mut hf_error,
    ) -> c_int;
    pub fn hf_close(client: *mut hf_client);
    pub fn hf_capabilities(client: *const hf_client) -> u32;

    pub fn hf_acquire(
        client: *mut hf_client,
        name: *const c_char,
        name_len: usize,
        opt: *const hf_options,
        ret_lock: *mut *mut hf_lock,
        err: *mut hf_error,
    ) -> c_int;
    pub fn hf_lock_release(lock: *mut hf_lock, err: *mut hf_error) -> c_int;
    pub fn hf_lock_renew(lock: *mut hf_lock, err: *mut hf_error) -> c_int;
    pub fn hf_lock_release_after(lock: *mut hf_lock, at_least_ms: i64, err: *mut hf_error) -> c_int;
    pub fn hf_lock_detach(lock: *mut hf_lock, err: *mut hf_error) -> c_int;
    pub fn hf_adopt(
        client: *mut hf_client,
        name: *const c_char,
        name_len: usize,
        ticket: *const c_char,
        opt: *const hf_options,
        ret_lock: *mut *mut hf_lock,
        err: *mut hf_error,
    ) -> c_int;

    pub fn hf_acquire_all(
        client: *mut hf_client,
        names: *const *const c_char,
        lens: *const usize,
        count: usize,
        opt: *const hf_options,
        ret_locks: *mut *mut hf_lock,
        err: *mut hf_error,
    ) -> c_int;
    pub fn hf_release_all(locks: *mut *mut hf_lock, count: usize, err: *mut hf_error) -> c_int;
    pub fn hf_lock_value(
        lock: *mut hf_lock,
        buf: *mut c_void,
        size: usize,
        ret_len: *mut usize,
        ret_doubt: *mut c_int,
        err: *mut hf_error,
    ) -> c_int;
    pub fn hf_lock_set_value(lock: *mut hf_lock, value: *const c_void, len: usize, err: *mut hf_error) -> c_int;
    pub fn hf_lock_wanted(lock: *const hf_lock) -> c_int;

    pub fn hf_acquire_start(
        client: *mut hf_client,
        name: *const c_char,
        name_len: usize,
        opt: *const hf_options,
        tag: u64,
        err: *mut hf_error,
    ) -> c_int;
    pub fn hf_acquire_or_start(
        client: *mut hf_client,
        name: *const c_char,
        name_len: usize,
        opt: *const hf_options,
        tag: u64,
        ret_lock: *mut *mut hf_lock,
        err: *mut hf_error,
    ) -> c_int;
    pub fn hf_acquire_stop(client: *mut hf_client, tag: u64) -> c_int;
    pub fn hf_release_start(lock: *mut hf_lock, tag: u64, err: *mut hf_error) -> c_int;
    pub fn hf_event_fd(client: *mut hf_client) -> c_int;
    pub fn hf_event_next(client: *mut hf_client, wait_ms: i64, ret_event: *mut hf_event) -> c_int;

    pub fn hf_cancel_new(ret_cancel: *mut *mut hf_cancel) -> c_int;
    pub fn hf_cancel_fire(cancel: *mut hf_cancel);
    pub fn hf_cancel_free(cancel: *mut hf_cancel);

    pub fn hf_lock_state(lock: *const hf_lock) -> c_int;
    pub fn hf_lock_cause(lock: *const hf_lock) -> c_int;
    pub fn hf_lock_error(lock: *const hf_lock, err: *mut hf_error) -> c_int;
    pub fn hf_lock_remaining_ms(lock: *const hf_lock) -> i64;
    pub fn hf_lock_fd(lock: *mut hf_lock) -> c_int;
    pub fn hf_lock_generation(lock: *const hf_lock, ret_generation: *mut u64) -> c_int;
    pub fn hf_lock_sequencer(lock: *const hf_lock, buf: *mut c_char, size: usize) -> c_int;
    pub fn hf_lock_ticket(lock: *const hf_lock) -> *const c_char;
    pub fn hf_lock_name(lock: *const hf_lock, ret_len: *mut usize) -> *const c_char;

    pub fn hf_check(client: *mut hf_client, sequencer: *const c_char, err: *mut hf_error) -> c_int;
    pub fn hf_gate_new(ret_gate: *mut *mut hf_gate) -> c_int;
    pub fn hf_gate_pass(gate: *mut hf_gate, sequencer: *const c_char, err: *mut hf_error) -> c_int;
    pub fn hf_gate_levels(
        gate: *mut hf_gate,
        name: *const c_char,
        name_len: usize,
        ret_exclusive: *mut u64,
        ret_highest: *mut u64,
    ) -> c_int;
    pub fn hf_gate_restore(
        gate: *mut hf_gate,
        name: *const c_char,
        name_len: usize,
        exclusive: u64,
        highest: u64,
    ) -> c_int;
    pub fn hf_gate_free(gate: *mut hf_gate);

    pub fn hf_inspect(
        client: *mut hf_client,
        query: *const hf_query,
        ret_view: *mut *mut hf_view,
        err: *mut hf_error,
    ) -> c_int;
    pub fn hf_view_count(view: *const hf_view) -> usize;
    pub fn hf_view_entry(view: *const hf_view, i: usize) -> *const hf_entry;
    pub fn hf_view_value(
        view: *const hf_view,
        ret_value: *mut *const c_void,
        ret_len: *mut usize,
        ret_generation: *mut u64,
        ret_doubt: *mut c_int,
    ) -> c_int;
    pub fn hf_view_free(view: *mut hf_view);
    pub fn hf_break(
        client: *mut hf_client,
        name: *const c_char,
        name_len: usize,
        ticket: *const c_char,
        now: c_int,
        err: *mut hf_error,
    ) -> c_int;
    pub fn hf_setup(client: *mut hf_client, err: *mut hf_error) -> c_int;
    pub fn hf_purge(client: *mut hf_client, retain_ms: i64, ret_count: *mut u64, err: *mut hf_error) -> c_int;
    pub fn hf_diagnose(
        client: *mut hf_client,
        found: hf_finding_callback,
        arg: *mut c_void,
        err: *mut hf_error,
    ) -> c_int;
    pub fn hf_stores(found: hf_store_callback, arg: *mut c_void) -> c_int;
}
