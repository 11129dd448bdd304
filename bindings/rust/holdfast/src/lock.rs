//! A lock's description, and acquiring it.
use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use holdfast_sys as sys;

use crate::client::{c_text, Inner};
use crate::codes::{Code, FOREVER, NEVER};
use crate::error::{call, milliseconds, Error, Result};
use crate::events::{unpoisoned, Grant, RawLock};
use crate::held::Held;

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By one.
    Exclusive = 0,
    /// By all who ask for it shared.
    Shared = 1,
}

/// Who may enter a lock again; without one, every acquire is an owner of its own: tasks have no identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(u64);

static LAST_OWNER: AtomicU64 = AtomicU64::new(1 << 62);

impl Owner {
    /// One that nobody else in this process has.
    #[allow(clippy::new_without_default)] // two of them are never equal
    pub fn new() -> Owner {
        Owner(LAST_OWNER.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Ends waits, from any thread. One can serve many waits; once fired, it stays fired.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Mutex<Cancelling>>);

#[derive(Default)]
struct Cancelling {
    fired: bool,
    bids: Vec<(Weak<Inner>, u64)>,
}

impl Cancel {
    /// One that has not fired.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Ends the waits of which this is a part: [`Code::Cancelled`], when nothing of them is left in the store.
    pub fn fire(&self) {
        let bids = {
            let mut state = unpoisoned(&self.0);
            state.fired = true;
            std::mem::take(&mut state.bids)
        };
        for (inner, tag) in bids {
            if let Some(inner) = inner.upgrade() {
                inner.stop(tag);
            }
        }
    }

    /// False: it has fired already.
    fn add(&self, inner: &Arc<Inner>, tag: u64) -> bool {
        let mut state = unpoisoned(&self.0);
        state.bids.push((Arc::downgrade(inner), tag));
        !state.fired
    }

    fn remove(&self, tag: u64) {
        unpoisoned(&self.0).bids.retain(|(_, other)| *other != tag);
    }
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cancel").field("fired", &unpoisoned(&self.0).fired).finish()
    }
}

impl Inner {
    fn stop(&self, tag: u64) {
        if let Ok(_entered) = self.enter("") {
            // SAFETY: the client is open.
            unsafe { sys::hf_acquire_stop(self.c, tag) };
        }
    }
}

/// Describes a lock; it holds nothing. Without further words it is exclusive, with a lease of 30 s that is renewed in
/// the background, and the wait has no limit. Each acquire makes a [`Held`] of its own.
#[derive(Clone)]
pub struct Lock {
    inner: Arc<Inner>,
    name: Box<[u8]>,
    mode: Mode,
    limit: u32,
    ttl_ms: i64,
    wait_ms: i64,
    lock_delay_ms: i64,
    max_hold_ms: i64,
    patience_ms: i64,
    owner: Option<Owner>,
    by_hand: bool,
    confirmed: bool,
    note: String,
    cancel: Option<Cancel>,
}

impl Lock {
    pub(crate) fn new(inner: Arc<Inner>, name: &[u8]) -> Lock {
        Lock {
            inner,
            name: name.into(),
            mode: Mode::Exclusive,
            limit: 0,
            ttl_ms: 0,
            wait_ms: FOREVER,
            lock_delay_ms: 0,
            max_hold_ms: 0,
            patience_ms: 0,
            owner: None,
            by_hand: false,
            confirmed: false,
            note: String::new(),
            cancel: None,
        }
    }

    /// Other shared holders may hold it too.
    pub fn shared(mut self) -> Lock {
        self.mode = Mode::Shared;
        self
    }

    /// Shared, with at most `n` holders.
    pub fn limit(mut self, n: u32) -> Lock {
        self.limit = n;
        self.shared()
    }

    /// The lease: how long the lock stays if its holder vanishes.
    pub fn ttl(mut self, ttl: Duration) -> Lock {
        self.ttl_ms = milliseconds(ttl);
        self
    }

    /// It stays until it is released or broken.
    pub fn never_expires(mut self) -> Lock {
        self.ttl_ms = NEVER;
        self
    }

    /// Limits the wait; zero: do not wait for others.
    pub fn timeout(mut self, wait: Duration) -> Lock {
        self.wait_ms = milliseconds(wait);
        self
    }

    /// The lock stays closed this much longer if its holder vanishes without a release.
    pub fn lock_delay(mut self, delay: Duration) -> Lock {
        self.lock_delay_ms = milliseconds(delay);
        self
    }

    /// Renewals end after this time; then the lock is lost.
    pub fn max_hold(mut self, max: Duration) -> Lock {
        self.max_hold_ms = milliseconds(max);
        self
    }

    /// How long to keep trying while the store does not answer, within the wait; [`Duration::MAX`]: no limit.
    pub fn patience(mut self, patience: Duration) -> Lock {
        self.patience_ms = if patience == Duration::MAX { FOREVER } else { milliseconds(patience) };
        self
    }

    /// Shown to people who look at the lock; at most 256 bytes.
    pub fn note(mut self, note: &str) -> Lock {
        self.note = note.to_owned();
        self
    }

    /// This owner may acquire the lock again while it holds it, on the terms of the first time.
    pub fn reentrant(mut self, owner: Owner) -> Lock {
        self.owner = Some(owner);
        self
    }

    /// No renewal in the background: call [`Held::renew`].
    pub fn by_hand(mut self) -> Lock {
        self.by_hand = true;
        self
    }

    /// Acquiring returns only after the store has recorded that we know of the grant.
    pub fn confirmed(mut self) -> Lock {
        self.confirmed = true;
        self
    }

    /// The wait ends when this is fired.
    pub fn cancel(mut self, cancel: &Cancel) -> Lock {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Calls `use_it` with the options as C wants them.
    fn with_options<T>(&self, owner: u64, use_it: impl FnOnce(&sys::hf_options) -> T) -> Result<T> {
        let note = c_text("the note", &self.note)?;
        Ok(use_it(&sys::hf_options {
            size: std::mem::size_of::<sys::hf_options>(),
            mode: self.mode as i32,
            limit: self.limit,
            ttl_ms: self.ttl_ms,
            wait_ms: self.wait_ms,
            lock_delay_ms: self.lock_delay_ms,
            max_hold_ms: self.max_hold_ms,
            reentrant: self.owner.is_some().into(),
            owner,
            by_hand: self.by_hand.into(),
            confirmed: self.confirmed.into(),
            note: if self.note.is_empty() { ptr::null() } else { note.as_ptr() },
            cancel: ptr::null_mut(),
            on_at_risk: None,
            on_lost: None,
            on_wait: None,
            arg: ptr::null_mut(),
            patience_ms: self.patience_ms,
            on_wanted: None,
            wanted: 0,
        }))
    }

    fn shown(&self) -> String {
        format!("acquire '{}'", String::from_utf8_lossy(&self.name))
    }

    /// Starts a bid; `here` makes the first attempt on this thread.
    fn start(&self, here: bool) -> Result<(Bid, Option<RawLock>)> {
        let grant = Grant::new(&self.name);
        let tag = self.inner.note(&grant)?;
        let bid = Bid { inner: self.inner.clone(), grant, tag, cancel: self.cancel.clone(), open: true };
        if self.cancel.as_ref().is_some_and(|cancel| !cancel.add(&self.inner, tag)) {
            return Err(Error::of(&self.shown(), Code::Cancelled as i32));
        }
        let lock = self.begin(here, tag)?;
        if lock.is_none() && self.cancel.as_ref().is_some_and(|cancel| unpoisoned(&cancel.0).fired) {
            self.inner.stop(tag); // it was fired before there was a bid to stop
        }
        Ok((bid, lock))
    }

    /// The call itself. The client is entered only here: who enters it twice would wait for a close that waits for it.
    fn begin(&self, here: bool, tag: u64) -> Result<Option<RawLock>> {
        let _entered = self.inner.enter(&self.shown())?;
        let mut lock = ptr::null_mut();
        let (c, name) = (self.inner.c, self.name.as_ptr().cast());
        self.with_options(self.owner.map_or(0, |owner| owner.0), |options| {
            // SAFETY: the client is open, and what the options point to lives until it returns.
            call(|err| unsafe {
                if here {
                    sys::hf_acquire_or_start(c, name, self.name.len(), options, tag, &mut lock, err)
                } else {
                    sys::hf_acquire_start(c, name, self.name.len(), options, tag, err)
                }
            })
        })??;
        if lock.is_null() {
            self.inner.start_pump()?;
            return Ok(None);
        }
        Ok(Some(RawLock(lock)))
    }

    /// Takes the lock, waiting on this thread.
    pub fn acquire(&self) -> Result<Held> {
        match self.start(true)? {
            (bid, Some(lock)) => Ok(bid.held(lock)),
            (bid, None) => {
                let outcome = bid.grant.wait();
                bid.finish(outcome)
            }
        }
    }

    /// Does not wait for others: [`Code::Busy`].
    pub fn try_acquire(&self) -> Result<Held> {
        self.clone().timeout(Duration::ZERO).acquire()
    }

    /// Takes the lock; waiting needs no thread. It works on every executor. A future that is dropped is withdrawn, and
    /// if the lock was granted in that moment, it goes back.
    pub fn acquire_async(&self) -> impl Future<Output = Result<Held>> + Send + 'static {
        let lock = self.clone();
        async move {
            // Nobody's round trip may hold up the executor; only an owner who enters again has none.
            match lock.start(lock.owner.is_some())? {
                (bid, Some(held)) => Ok(bid.held(held)),
                (bid, None) => bid.await,
            }
        }
    }

    /// Takes over the lock of this name by its ticket, after [`Held::detach`] or from another process, and restarts
    /// its lease. Of this description it uses `by_hand`, `max_hold` and `reentrant`. Adopt only what its holder has
    /// detached, or if that is dead.
    pub fn adopt(&self, ticket: &str) -> Result<Held> {
        let ticket = c_text("the ticket", ticket)?;
        let entered = self.inner.enter(&format!("adopt '{}'", String::from_utf8_lossy(&self.name)))?;
        let mut lock = ptr::null_mut();
        let owner = self.owner.unwrap_or_else(Owner::new).0; // else it would be the thread
        let grant = Grant::new(&self.name);
        let key = crate::held::note_adopted(&grant);
        let adopted = self.with_options(owner, |options| {
            let options = sys::hf_options {
                on_lost: Some(crate::held::on_adopted_lost),
                arg: ptr::without_provenance_mut(key),
                note: ptr::null(),
                ..*options
            };
            let (c, name) = (self.inner.c, self.name.as_ptr().cast());
            // SAFETY: the client is open, and all texts live until it returns; the callback knows a key, no pointer.
            call(|err| unsafe { sys::hf_adopt(c, name, self.name.len(), ticket.as_ptr(), &options, &mut lock, err) })
        });
        drop(entered);
        match adopted.and_then(|adopted| adopted) {
            Ok(()) => {
                let tag = self.inner.note(&grant)?;
                Ok(Held::new(self.inner.clone(), grant, tag, RawLock(lock), Some(key)))
            }
            Err(error) => {
                crate::held::forget_adopted(key);
                Err(error)
            }
        }
    }
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lock")
            .field("name", &String::from_utf8_lossy(&self.name))
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// A bid that is under way. Dropped before its end, it is withdrawn.
struct Bid {
    inner: Arc<Inner>,
    grant: Arc<Grant>,
    tag: u64,
    cancel: Option<Cancel>,
    open: bool,
}

impl Bid {
    fn held(mut self, lock: RawLock) -> Held {
        self.open = false;
        Held::new(self.inner.clone(), self.grant.clone(), self.tag, lock, None)
    }

    fn finish(self, outcome: Result<RawLock>) -> Result<Held> {
        outcome.map(|lock| self.held(lock))
    }
}

impl Future for Bid {
    type Output = Result<Held>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Held>> {
        self.grant.poll(context.waker()).map(|outcome| {
            let lock = outcome?;
            self.open = false;
            Ok(Held::new(self.inner.clone(), self.grant.clone(), self.tag, lock, None))
        })
    }
}

impl Drop for Bid {
    fn drop(&mut self) {
        if self.inner.is_forked() {
            return;
        }
        if let Some(cancel) = &self.cancel {
            cancel.remove(self.tag);
        }
        if self.open {
            self.inner.stop(self.tag);
            self.grant.abandon();
            self.inner.forget(self.tag);
        }
    }
}
