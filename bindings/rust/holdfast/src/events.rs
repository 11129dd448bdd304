//! How what was started is told of: one thread a client, which starts with the first wait, takes the library's events
//! and wakes threads and tasks. So futures work on every executor, and no runtime that stands still holds up others.
use std::collections::HashMap;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::task::{Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use holdfast_sys as sys;

use crate::client::Inner;
use crate::codes::{Cause, Code};
use crate::error::{call, error_of, Error, Result};

/// A panic elsewhere leaves nothing half done here.
pub(crate) fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A handle on its way to a [`Held`](crate::Held).
pub(crate) struct RawLock(pub(crate) *mut sys::hf_lock);

// SAFETY: the library allows every call from any thread.
unsafe impl Send for RawLock {}

/// Something that is told once, to a thread or a task.
pub(crate) struct Promise<T> {
    state: Mutex<Promised<T>>,
    changed: Condvar,
}

struct Promised<T> {
    value: Option<T>,
    told: bool,
    wakers: Vec<Waker>,
}

impl<T> Promise<T> {
    pub(crate) fn new() -> Promise<T> {
        Promise {
            state: Mutex::new(Promised { value: None, told: false, wakers: Vec::new() }),
            changed: Condvar::new(),
        }
    }

    /// The first time counts; what comes later is given back.
    pub(crate) fn tell(&self, value: T) -> Option<T> {
        let wakers = {
            let mut state = unpoisoned(&self.state);
            if state.told {
                return Some(value);
            }
            state.value = Some(value);
            state.told = true;
            std::mem::take(&mut state.wakers)
        };
        self.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
        None
    }

    /// Nobody will ask: what was told, if it was; nothing else can be told then.
    pub(crate) fn abandon(&self) -> Option<T> {
        let mut state = unpoisoned(&self.state);
        state.told = true;
        state.value.take()
    }

    /// Waits on this thread and takes the value out. None: not until then.
    pub(crate) fn wait(&self, until: Option<Instant>) -> Option<T> {
        self.wait_and(until, Option::take)
    }

    pub(crate) fn poll(&self, waker: &Waker) -> Poll<Option<T>> {
        self.poll_and(waker, Option::take)
    }

    fn wait_and(&self, until: Option<Instant>, get: fn(&mut Option<T>) -> Option<T>) -> Option<T> {
        let mut state = unpoisoned(&self.state);
        while !state.told {
            state = match until {
                None => self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(until) => {
                    let left = until.checked_duration_since(Instant::now())?;
                    self.changed.wait_timeout(state, left).unwrap_or_else(|poisoned| poisoned.into_inner()).0
                }
            };
        }
        get(&mut state.value)
    }

    fn poll_and(&self, waker: &Waker, get: fn(&mut Option<T>) -> Option<T>) -> Poll<Option<T>> {
        let mut state = unpoisoned(&self.state);
        if state.told {
            return Poll::Ready(get(&mut state.value));
        }
        if !state.wakers.iter().any(|w| w.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
        Poll::Pending
    }
}

/// As the others, for all who ask.
impl<T: Copy> Promise<T> {
    pub(crate) fn peek(&self) -> Option<T> {
        unpoisoned(&self.state).value
    }

    pub(crate) fn wait_and_leave(&self, until: Instant) -> Option<T> {
        self.wait_and(Some(until), |value| *value)
    }

    pub(crate) fn poll_and_leave(&self, waker: &Waker) -> Poll<Option<T>> {
        self.poll_and(waker, |value| *value)
    }
}

/// What the library's handle is to us: how its acquire ends, and its loss.
pub(crate) struct Grant {
    pub(crate) name: Box<[u8]>,
    /// An owner that entered again has the same one.
    pub(crate) lock: AtomicPtr<sys::hf_lock>,
    outcome: Promise<Result<RawLock>>,
    pub(crate) lost: Promise<Cause>,
}

impl Grant {
    pub(crate) fn new(name: &[u8]) -> Arc<Grant> {
        Arc::new(Grant {
            name: name.into(),
            lock: AtomicPtr::new(std::ptr::null_mut()),
            outcome: Promise::new(),
            lost: Promise::new(),
        })
    }

    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// A lock that nobody waits for any more goes back.
    pub(crate) fn tell(&self, outcome: Result<RawLock>) {
        if let Some(Ok(unwanted)) = self.outcome.tell(outcome) {
            give_back(unwanted);
        }
    }

    pub(crate) fn lose(&self, cause: Cause) {
        self.lost.tell(cause);
    }

    pub(crate) fn wait(&self) -> Result<RawLock> {
        self.outcome.wait(None).unwrap_or_else(|| Err(Error::of("acquire", Code::Cancelled as i32)))
    }

    pub(crate) fn poll(&self, waker: &Waker) -> Poll<Result<RawLock>> {
        self.outcome.poll(waker).map(|o| o.unwrap_or_else(|| Err(Error::of("acquire", Code::Cancelled as i32))))
    }

    /// Whoever waited has gone.
    pub(crate) fn abandon(&self) {
        if let Some(Ok(unwanted)) = self.outcome.abandon() {
            give_back(unwanted);
        }
    }
}

/// Without waiting, and without anybody who hears of it.
pub(crate) fn give_back(lock: RawLock) {
    // SAFETY: it is ours alone.
    unsafe { sys::hf_release_start(lock.0, 0, std::ptr::null_mut()) };
}

/// Who is to be told, by tag.
pub(crate) struct Told {
    pub(crate) last_tag: u64,
    pub(crate) grants: HashMap<u64, Arc<Grant>>,
    pub(crate) releases: HashMap<u64, Arc<Promise<Result<()>>>>,
}

/// The thread that takes events. It ends when this is dropped.
pub(crate) struct Pump {
    pid: u32,
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Pump {
    fn drop(&mut self) {
        if std::process::id() != self.pid {
            std::mem::forget(self.thread.take()); // it is the parent's, and so is the other end of the stream
            return;
        }
        let _ = self.stop.write_all(&[0]);
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Inner {
    /// From now on events are taken. The client is entered.
    pub(crate) fn start_pump(self: &Arc<Inner>) -> Result<()> {
        let mut pump = unpoisoned(&self.pump);
        if pump.is_some() {
            return Ok(());
        }
        let no_pump = |error: std::io::Error| Error::new(Code::System, format!("a thread for events: {error}"));
        // SAFETY: the client is open; its descriptor is copied, since it is closed with it.
        let fd = unsafe { libc::fcntl(sys::hf_event_fd(self.c), libc::F_DUPFD_CLOEXEC, 0) };
        if fd < 0 {
            return Err(no_pump(std::io::Error::last_os_error()));
        }
        // SAFETY: it is new and ours.
        let events = unsafe { OwnedFd::from_raw_fd(fd) };
        let (stop, stopped) = UnixStream::pair().map_err(no_pump)?;
        let inner = Arc::downgrade(self);
        let thread = thread::Builder::new()
            .name("hf-events".into())
            .stack_size(128 << 10)
            .spawn(move || pump_events(&inner, &events, &stopped))
            .map_err(no_pump)?;
        *pump = Some(Pump { pid: std::process::id(), stop, thread: Some(thread) });
        Ok(())
    }

    fn take_events(&self) {
        while let Some(event) = self.next_event() {
            self.dispatch(&event);
        }
    }

    fn next_event(&self) -> Option<sys::hf_event> {
        let _entered = self.enter("").ok()?;
        let mut event = sys::hf_event {
            size: std::mem::size_of::<sys::hf_event>(),
            kind: 0,
            cause: 0,
            tag: 0,
            lock: std::ptr::null_mut(),
            err: sys::hf_error { code: 0, retriable: 0, store_code: 0, may_hold_ms: 0, text: [0; 400] },
        };
        // SAFETY: the client is open.
        (unsafe { sys::hf_event_next(self.c, 0, &mut event) } == sys::HF_OK).then_some(event)
    }

    fn dispatch(&self, event: &sys::hf_event) {
        let result = if event.err.code == sys::HF_OK { Ok(()) } else { Err(error_of(&event.err)) };
        let grant = unpoisoned(&self.told).grants.get(&event.tag).cloned();
        match (event.kind, grant) {
            (sys::HF_EVENT_ACQUIRED, Some(grant)) => grant.tell(Ok(RawLock(event.lock))),
            (sys::HF_EVENT_ACQUIRED, None) => give_back(RawLock(event.lock)),
            (sys::HF_EVENT_FAILED, Some(grant)) => {
                self.forget(event.tag);
                grant.tell(result.map(|()| RawLock(event.lock)));
            }
            (sys::HF_EVENT_LOST, grant) => {
                let cause = Cause::from_value(event.cause).unwrap_or(Cause::Gone);
                let told = unpoisoned(&self.told);
                let same = |other: &&Arc<Grant>| other.lock.load(Ordering::Relaxed) == event.lock;
                told.grants.values().filter(same).chain(&grant).for_each(|grant| grant.lose(cause));
            }
            (sys::HF_EVENT_RELEASED, _) => {
                let release = unpoisoned(&self.told).releases.remove(&event.tag);
                if let Some(release) = release {
                    release.tell(result);
                }
            }
            _ => {}
        }
    }

    /// Gives a grant its tag: events of it may come from now on.
    pub(crate) fn note(&self, grant: &Arc<Grant>) -> Result<u64> {
        if self.is_forked() {
            return Err(Error::of(&format!("acquire '{}'", grant.shown()), Code::Forked as i32));
        }
        let mut told = unpoisoned(&self.told);
        told.last_tag += 1;
        let tag = told.last_tag;
        told.grants.insert(tag, grant.clone());
        Ok(tag)
    }

    pub(crate) fn forget(&self, tag: u64) {
        unpoisoned(&self.told).grants.remove(&tag);
    }

    /// Begins a release whose end is told.
    pub(crate) fn start_release(self: &Arc<Inner>, lock: RawLock) -> Arc<Promise<Result<()>>> {
        let promise = Arc::new(Promise::new());
        let entered = self.enter("release");
        let tag = {
            let mut told = unpoisoned(&self.told);
            told.last_tag += 1;
            let tag = told.last_tag;
            if entered.is_ok() {
                told.releases.insert(tag, promise.clone());
            }
            tag
        };
        let begun = entered.as_ref().map_err(Error::clone).and_then(|_| self.start_pump()).and_then(|()| {
            // SAFETY: the handle is ours, and nobody uses it any more.
            call(|err| unsafe { sys::hf_release_start(lock.0, tag, err) })
        });
        if let Err(error) = begun {
            unpoisoned(&self.told).releases.remove(&tag);
            if error.code() != Code::Forked {
                give_back(lock);
            }
            promise.tell(Err(error));
        }
        promise
    }
}

fn pump_events(inner: &Weak<Inner>, events: &OwnedFd, stopped: &UnixStream) {
    let ready = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut fds = [ready(stopped.as_raw_fd()), ready(events.as_raw_fd())];
    loop {
        // SAFETY: two structures, and their number.
        let count = unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) };
        if count > 0 && fds[0].revents != 0 {
            return;
        }
        match inner.upgrade() {
            Some(inner) => inner.take_events(),
            None => return,
        }
    }
}
