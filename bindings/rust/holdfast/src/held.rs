//! A lock that was obtained.
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use holdfast_sys as sys;

use crate::client::Inner;
use crate::codes::{Cause, Code, SEQUENCER_MAX};
use crate::error::{call, duration, Error, Result};
use crate::events::{give_back, unpoisoned, Grant, RawLock};

/// What is known of a lock at the moment of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Ours, for at least [`Held::remaining`].
    Held,
    /// Still ours, but a renewal is overdue.
    AtRisk,
    /// No longer ours; never turns back.
    Lost,
}

/// A lock that was obtained. Dropping it begins the release and does not wait for it; [`release`](Held::release) waits,
/// and says how it went.
///
/// What was given back cannot be used:
/// ```compile_fail
/// let held = holdfast::open("memory://")?.lock("x").acquire()?;
/// held.release()?;
/// held.token()?;
/// # Ok::<(), holdfast::Error>(())
/// ```
#[must_use = "a lock that is dropped is given back"]
pub struct Held {
    inner: Arc<Inner>,
    grant: Arc<Grant>,
    tag: u64,
    lock: *mut sys::hf_lock,
    adopted: Option<usize>,
}

// SAFETY: the library allows every call on a lock from any thread; to give it back takes the value.
unsafe impl Send for Held {}
unsafe impl Sync for Held {}

/// What cannot be detached is still held.
#[derive(Debug)]
pub struct NotDetached {
    /// The lock, as it was.
    pub held: Held,
    /// Why.
    pub error: Error,
}

impl std::fmt::Display for NotDetached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for NotDetached {}

impl From<NotDetached> for Error {
    fn from(failed: NotDetached) -> Error {
        failed.error
    }
}

impl Held {
    pub(crate) fn new(inner: Arc<Inner>, grant: Arc<Grant>, tag: u64, lock: RawLock, adopted: Option<usize>) -> Held {
        grant.lock.store(lock.0, Ordering::Relaxed);
        Held { inner, grant, tag, lock: lock.0, adopted }
    }

    /// Why nothing can be done with it any more.
    fn check(&self, what: &str) -> Result<()> {
        // SAFETY: the handle is ours until it is given back, which takes this value.
        let lost = unsafe { sys::hf_lock_state(self.lock) } == State::Lost as c_int;
        let code = match self.cause() {
            _ if !lost => return Ok(()),
            Some(Cause::Closed) => Code::Closed,
            Some(Cause::Forked) => Code::Forked,
            _ => Code::Lost,
        };
        Err(Error::new(code, format!("{what} '{}': {}", self.grant.shown(), code.text())))
    }

    /// The fencing token: larger than that of every earlier grant of this name.
    pub fn token(&self) -> Result<u64> {
        self.check("token of")?;
        let mut token = 0;
        // SAFETY: as in check().
        match unsafe { sys::hf_lock_generation(self.lock, &mut token) } {
            sys::HF_OK => Ok(token),
            code => Err(Error::of(&format!("token of '{}'", self.grant.shown()), code)),
        }
    }

    /// A proof to show to a resource, for [`Client::check`](crate::Client::check) and [`Gate`](crate::Gate).
    pub fn sequencer(&self) -> Result<String> {
        self.check("sequencer of")?;
        let mut buf = [0 as c_char; SEQUENCER_MAX as usize];
        // SAFETY: as in check(); the buffer has that size, and is ended by a NUL.
        match unsafe { sys::hf_lock_sequencer(self.lock, buf.as_mut_ptr(), buf.len()) } {
            sys::HF_OK => Ok(unsafe { crate::error::text(buf.as_ptr()) }),
            code => Err(Error::of(&format!("sequencer of '{}'", self.grant.shown()), code)),
        }
    }

    /// The secret by which the lock can be adopted or broken.
    pub fn ticket(&self) -> &str {
        // SAFETY: hex digits and a NUL, borrowed until the release, which takes this value.
        unsafe { CStr::from_ptr(sys::hf_lock_ticket(self.lock)) }.to_str().unwrap_or("")
    }

    /// The name of the lock.
    pub fn name(&self) -> &[u8] {
        &self.grant.name
    }

    /// True at the moment of the answer, not on the next line.
    pub fn state(&self) -> State {
        // SAFETY: as in check().
        match unsafe { sys::hf_lock_state(self.lock) } {
            0 => State::Held,
            1 => State::AtRisk,
            _ => State::Lost,
        }
    }

    /// Why it was lost; `None`: it was not.
    pub fn cause(&self) -> Option<Cause> {
        let told = if self.inner.is_forked() { None } else { self.grant.lost.peek() };
        // SAFETY: as in check().
        told.or_else(|| Cause::from_value(unsafe { sys::hf_lock_cause(self.lock) }))
            .filter(|cause| *cause != Cause::None)
    }

    /// How long it stays ours without another renewal; zero when it is lost, [`Duration::MAX`] if it never expires.
    pub fn remaining(&self) -> Duration {
        // SAFETY: as in check().
        duration(unsafe { sys::hf_lock_remaining_ms(self.lock) })
    }

    /// Why the last renewal failed, which is the reason behind [`State::AtRisk`]; `None`: it did not.
    pub fn last_error(&self) -> Option<Error> {
        // SAFETY: as in check().
        call(|err| unsafe { sys::hf_lock_error(self.lock, err) }).err()
    }

    /// Renews the lease now. You need it only with [`Lock::by_hand`](crate::Lock::by_hand).
    pub fn renew(&self) -> Result<()> {
        self.check("renew")?;
        // SAFETY: as in check().
        call(|err| unsafe { sys::hf_lock_renew(self.lock, err) })
    }

    /// Ends when the lock is lost, with the cause; also when this is dropped meanwhile, with [`Cause::None`].
    pub fn lost(&self) -> Lost {
        self.hear();
        Lost(self.grant.clone())
    }

    /// Waits on this thread for the loss; `None`: not within that time.
    pub fn wait_lost(&self, timeout: Duration) -> Option<Cause> {
        self.hear();
        let far = Duration::from_secs(100 * 365 * 86400);
        self.grant.lost.wait_and_leave(Instant::now() + timeout.min(far))
    }

    /// Makes sure that somebody takes events. Without a thread for that, state() still tells.
    fn hear(&self) {
        if let Ok(_entered) = self.inner.enter("") {
            let _ = self.inner.start_pump();
        }
    }

    /// Gives the lock back. [`Code::Stale`]: it was no longer ours, and nothing has changed. [`Code::Unknown`]: the
    /// store did not answer; the client goes on trying in the background.
    pub fn release(self) -> Result<()> {
        let lock = self.take();
        // SAFETY: the handle is ours, and this is its last use.
        call(|err| unsafe { sys::hf_lock_release(lock.lock, err) })
    }

    /// The same for tasks. It begins at once, also if nobody awaits it.
    pub fn release_async(self) -> impl Future<Output = Result<()>> + Send + 'static {
        let lock = self.take();
        let promise = lock.inner.start_release(RawLock(lock.lock));
        std::future::poll_fn(move |context| promise.poll(context.waker()).map(|told| told.unwrap_or(Ok(()))))
    }

    /// Leaves the lock in the store, where it lasts until its lease ends or somebody adopts it by this ticket.
    pub fn detach(self) -> std::result::Result<String, NotDetached> {
        if let Err(error) = self.check("detach") {
            return Err(NotDetached { held: self, error });
        }
        let ticket = self.ticket().to_owned();
        // SAFETY: the handle is ours; if this succeeds, it is its last use.
        match call(|err| unsafe { sys::hf_lock_detach(self.lock, err) }) {
            Ok(()) => {
                self.take();
                Ok(ticket)
            }
            Err(error) => Err(NotDetached { held: self, error }),
        }
    }

    /// The parts, without the release that a drop is. Nothing more is told of it.
    fn take(self) -> Parts {
        let held = ManuallyDrop::new(self);
        held.end();
        // SAFETY: `held` is never dropped, and each part is read once.
        unsafe {
            drop(std::ptr::read(&held.grant));
            Parts { inner: std::ptr::read(&held.inner), lock: held.lock }
        }
    }

    fn end(&self) {
        if self.inner.is_forked() {
            return;
        }
        self.inner.forget(self.tag);
        if let Some(key) = self.adopted {
            forget_adopted(key);
        }
        self.grant.lost.tell(Cause::None);
    }
}

struct Parts {
    inner: Arc<Inner>,
    lock: *mut sys::hf_lock,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end();
        give_back(RawLock(self.lock));
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("name", &self.grant.shown()).field("state", &self.state()).finish_non_exhaustive()
    }
}

/// What [`Held::lost`] gives. It borrows nothing, so a task of its own can await it.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Lost(Arc<Grant>);

impl Future for Lost {
    type Output = Cause;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Cause> {
        self.0.lost.poll_and_leave(context.waker()).map(|cause| cause.unwrap_or(Cause::None))
    }
}

/// Locks that were adopted have no events: the library calls. It is given a number, so nothing can dangle.
static ADOPTED: LazyLock<Mutex<HashMap<usize, Arc<Grant>>>> = LazyLock::new(Default::default);
static LAST_ADOPTED: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn note_adopted(grant: &Arc<Grant>) -> usize {
    let key = LAST_ADOPTED.fetch_add(1, Ordering::Relaxed) + 1;
    unpoisoned(&ADOPTED).insert(key, grant.clone());
    key
}

pub(crate) fn forget_adopted(key: usize) {
    unpoisoned(&ADOPTED).remove(&key);
}

pub(crate) unsafe extern "C" fn on_adopted_lost(_: *mut sys::hf_lock, cause: c_int, key: *mut c_void) {
    let grant = unpoisoned(&ADOPTED).get(&(key as usize)).cloned();
    if let Some(grant) = grant {
        grant.lose(Cause::from_value(cause).unwrap_or(Cause::Gone));
    }
}
