//! Looking at a store, and repairing it. These calls wait for the store on the caller's thread: a task wraps them in
//! its executor's `spawn_blocking`.
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::time::Duration;

use holdfast_sys as sys;

use crate::client::{c_text, Client};
use crate::error::{call, duration, milliseconds, text, Error, Result};
use crate::lock::Mode;
use crate::Capabilities;

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Holds the lock.
    Inside,
    /// Vanished or broken; its lock-delay keeps the lock closed.
    Lingering,
    /// In the queue.
    Waiting,
}

/// One holder or waiter.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(missing_docs)] // what the names say
pub struct Entry {
    pub name: Vec<u8>,
    pub place: Place,
    /// In the queue, from 1; 0 for holders.
    pub position: usize,
    pub mode: Mode,
    pub limit: u32,
    pub ticket: String,
    /// The fencing token; 0 while waiting.
    pub token: u64,
    /// [`Duration::MAX`]: until released or broken.
    pub ttl: Duration,
    pub lock_delay: Duration,
    /// How long it has held or waited.
    pub age: Duration,
    /// Of the lease or lock-delay, or until a waiter must report again; [`Duration::MAX`]: no lease.
    pub remaining: Duration,
    /// The holder knows that it holds.
    pub claimed: bool,
    pub host: String,
    pub user: String,
    pub program: String,
    pub note: String,
    pub pid: i64,
}

/// What to look at; the default is everything.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Exactly this lock.
    pub name: Option<Vec<u8>>,
    /// Names that begin like this.
    pub prefix: Option<Vec<u8>>,
    /// Only holders of at least this age; zero: all, and waiters.
    pub older_than: Duration,
}

impl Query {
    /// Exactly this lock.
    pub fn name(name: impl AsRef<[u8]>) -> Query {
        Query { name: Some(name.as_ref().to_vec()), ..Query::default() }
    }

    /// Names that begin like this.
    pub fn prefix(prefix: impl AsRef<[u8]>) -> Query {
        Query { prefix: Some(prefix.as_ref().to_vec()), ..Query::default() }
    }
}

/// What [`Client::diagnose`] has seen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// 0 fine, 1 note, 2 warning, 3 problem.
    pub level: i32,
    /// Of the contract, such as "C3".
    pub clause: Option<String>,
    /// One sentence.
    pub text: String,
}

/// A store that this installation knows.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(missing_docs)] // what the names say
pub struct StoreInfo {
    pub name: String,
    pub schemes: String,
    pub summary: String,
    pub capabilities: Capabilities,
    /// One per line.
    pub options: String,
    /// What `setup` would create.
    pub ddl: Option<String>,
    /// Why it cannot be used; `None`: it can.
    pub missing: Option<String>,
}

/// # Safety
/// `s` is NULL, or ends in NUL.
unsafe fn maybe(s: *const c_char) -> Option<String> {
    (!s.is_null()).then(|| text(s))
}

struct View(*mut sys::hf_view);

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: its last use.
        unsafe { sys::hf_view_free(self.0) };
    }
}

/// # Safety
/// The view of this entry lives.
unsafe fn entry(e: &sys::hf_entry) -> Entry {
    Entry {
        name: std::slice::from_raw_parts(e.name.cast::<u8>(), e.name_len).to_vec(),
        place: match e.place {
            0 => Place::Inside,
            1 => Place::Lingering,
            _ => Place::Waiting,
        },
        position: e.position,
        mode: if e.mode == Mode::Shared as c_int { Mode::Shared } else { Mode::Exclusive },
        limit: e.limit,
        ticket: text(e.ticket.as_ptr()),
        token: e.generation,
        ttl: duration(e.ttl_ms),
        lock_delay: duration(e.lock_delay_ms),
        age: duration(e.age_ms),
        remaining: duration(e.remaining_ms),
        claimed: e.claimed != 0,
        host: text(e.host),
        user: text(e.user),
        program: text(e.program),
        note: text(e.note),
        pid: e.pid,
    }
}

impl Client {
    /// Finds holders and waiters, sorted by name, holders before waiters, waiters in the order of the queue.
    pub fn inspect(&self, query: &Query) -> Result<Vec<Entry>> {
        let _entered = self.inner.enter("inspect")?;
        let part = |p: &Option<Vec<u8>>| p.as_ref().map_or((ptr::null(), 0), |p| (p.as_ptr().cast(), p.len()));
        let ((name, name_len), (prefix, prefix_len)) = (part(&query.name), part(&query.prefix));
        let older_than_ms = milliseconds(query.older_than);
        let size = std::mem::size_of::<sys::hf_query>();
        let query = sys::hf_query { size, name, name_len, prefix, prefix_len, older_than_ms, value: 0 };
        let mut view = ptr::null_mut();
        // SAFETY: the client is open, and what the query points to lives until it returns.
        call(|err| unsafe { sys::hf_inspect(self.inner.c, &query, &mut view, err) })?;
        let view = View(view);
        // SAFETY: entries live as long as the view, and these are as many as there are.
        unsafe { Ok((0..sys::hf_view_count(view.0)).map(|i| entry(&*sys::hf_view_entry(view.0, i))).collect()) }
    }

    /// Takes the lock away from a ticket. A holder with a lease may be alive, so the lock stays closed until its lease
    /// ends; `now` skips that wait.
    pub fn break_lock(&self, name: impl AsRef<[u8]>, ticket: &str, now: bool) -> Result<()> {
        let (name, ticket) = (name.as_ref(), c_text("the ticket", ticket)?);
        let _entered = self.inner.enter("break")?;
        // SAFETY: the client is open, and both texts live until it returns.
        call(|err| unsafe {
            sys::hf_break(self.inner.c, name.as_ptr().cast(), name.len(), ticket.as_ptr(), now.into(), err)
        })
    }

    /// Asks the store whether the grant behind this sequencer is live now; [`Code::Stale`](crate::Code::Stale): it is not.
    pub fn check(&self, sequencer: &str) -> Result<()> {
        let sequencer = c_text("the sequencer", sequencer)?;
        let _entered = self.inner.enter("check")?;
        // SAFETY: the client is open.
        call(|err| unsafe { sys::hf_check(self.inner.c, sequencer.as_ptr(), err) })
    }

    /// Creates what the store needs (tables, directories) and leaves alone what exists.
    pub fn setup(&self) -> Result<()> {
        let _entered = self.inner.enter("setup")?;
        // SAFETY: the client is open.
        call(|err| unsafe { sys::hf_setup(self.inner.c, err) })
    }

    /// Removes the records of free locks that nobody has touched for so long; zero: the store's own option `retain`.
    /// Very many need several calls: none is left when it returns 0.
    pub fn purge(&self, retain: Duration) -> Result<u64> {
        let _entered = self.inner.enter("purge")?;
        let mut count = 0;
        // SAFETY: the client is open.
        call(|err| unsafe { sys::hf_purge(self.inner.c, milliseconds(retain), &mut count, err) })?;
        Ok(count)
    }

    /// Examines a live store.
    pub fn diagnose(&self) -> Result<Vec<Finding>> {
        unsafe extern "C" fn found(level: c_int, clause: *const c_char, sentence: *const c_char, list: *mut c_void) {
            (*list.cast::<Vec<Finding>>()).push(Finding { level, clause: maybe(clause), text: text(sentence) });
        }
        let _entered = self.inner.enter("diagnose")?;
        let mut findings = Vec::<Finding>::new();
        // SAFETY: the client is open; the callback is called on this thread, before it returns.
        call(|err| unsafe { sys::hf_diagnose(self.inner.c, found, (&raw mut findings).cast(), err) })?;
        Ok(findings)
    }
}

/// The stores that this installation knows.
pub fn stores() -> Result<Vec<StoreInfo>> {
    unsafe extern "C" fn found(info: *const sys::hf_store_info, list: *mut c_void) {
        let info = &*info;
        (*list.cast::<Vec<StoreInfo>>()).push(StoreInfo {
            name: text(info.name),
            schemes: text(info.schemes),
            summary: text(info.summary),
            capabilities: Capabilities(info.capabilities),
            options: text(info.options),
            ddl: maybe(info.ddl),
            missing: maybe(info.missing),
        });
    }
    let mut stores = Vec::<StoreInfo>::new();
    // SAFETY: the callback is called on this thread, before it returns.
    match unsafe { sys::hf_stores(found, (&raw mut stores).cast()) } {
        sys::HF_OK => Ok(stores),
        code => Err(Error::of("stores", code)),
    }
}
