//! What a call says that did not do what it was asked for.
use std::ffi::{c_char, c_int, CStr};
use std::fmt;
use std::time::Duration;

use holdfast_sys as sys;

use crate::codes::Code;

/// What this crate's functions return.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed: a [`Code`] to decide by, and one sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: Code,
    retriable: bool,
    store_code: i64,
    may_hold: Duration,
    text: Box<str>,
}

impl Error {
    pub(crate) fn new(code: Code, text: impl Into<Box<str>>) -> Error {
        Error { code, retriable: false, store_code: 0, may_hold: Duration::ZERO, text: text.into() }
    }

    /// Of a C function that has no more to say than its code.
    pub(crate) fn of(what: &str, code: c_int) -> Error {
        let code = code_of(code);
        Error::new(code, format!("{what}: {}", code.text()))
    }

    /// What kind of error it is.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The same call may succeed later.
    pub fn is_retriable(&self) -> bool {
        self.retriable
    }

    /// The store's own number (SQLite result code, errno, ...), 0 if none.
    pub fn store_code(&self) -> i64 {
        self.store_code
    }

    /// [`Code::Unknown`]: the store may hold the lock for us this long; [`Duration::MAX`]: for ever.
    pub fn may_hold(&self) -> Duration {
        self.may_hold
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

fn code_of(code: c_int) -> Code {
    Code::from_value(code).unwrap_or(Code::System)
}

/// Calls C with room for what it has to say.
pub(crate) fn call(function: impl FnOnce(*mut sys::hf_error) -> c_int) -> Result<()> {
    let mut said = sys::hf_error { code: 0, retriable: 0, store_code: 0, may_hold_ms: 0, text: [0; 400] };
    match function(&mut said) {
        sys::HF_OK => Ok(()),
        code if said.code == code => Err(error_of(&said)),
        code => Err(Error::new(code_of(code), code_of(code).text())),
    }
}

#[allow(clippy::unnecessary_cast)] // a C long has 32 bits on some machines
pub(crate) fn error_of(err: &sys::hf_error) -> Error {
    Error {
        code: code_of(err.code),
        retriable: err.retriable != 0,
        store_code: err.store_code as i64,
        may_hold: duration(err.may_hold_ms),
        // SAFETY: the library ends it with a NUL, and it lives as long as `err`.
        text: unsafe { text(err.text.as_ptr()) }.into(),
    }
}

/// # Safety
/// `s` is NULL, or ends in NUL.
pub(crate) unsafe fn text(s: *const c_char) -> String {
    if s.is_null() {
        return String::new();
    }
    CStr::from_ptr(s).to_string_lossy().into_owned()
}

/// Milliseconds of C, of which a negative number and the largest mean "for ever".
pub(crate) fn duration(ms: i64) -> Duration {
    if ms < 0 || ms == i64::MAX {
        return Duration::MAX;
    }
    Duration::from_millis(ms as u64)
}

/// Rounded up: a lease or a wait is never shorter than asked for.
pub(crate) fn milliseconds(d: Duration) -> i64 {
    i64::try_from(d.as_nanos().div_ceil(1_000_000)).map_or(i64::MAX / 2_000_000, |ms| ms.min(i64::MAX / 2_000_000))
}
