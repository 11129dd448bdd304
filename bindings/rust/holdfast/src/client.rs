//! A client: its opening, its end, and the way into C.
use std::collections::HashMap;
use std::ffi::CString;
use std::ptr;
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, Weak};

use holdfast_sys as sys;

use crate::codes::{Cause, Code, HEADER_VERSION};
use crate::error::{call, text, Error, Result};
use crate::events::{unpoisoned, Pump, Told};
use crate::lock::Lock;
use crate::Capabilities;

/// A connection to one store, for all threads and tasks; clones are the same client. It is closed by
/// [`close`](Client::close), or when the last clone and the last lock of it are dropped.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) c: *mut sys::hf_client,
    /// Read: a call is in C. Written: it is closed.
    closed: RwLock<bool>,
    pid: u32,
    capabilities: u32,
    pub(crate) told: Mutex<Told>,
    pub(crate) pump: Mutex<Option<Pump>>,
}

// SAFETY: the library allows every call from any thread, and `closed` keeps them from what is freed.
unsafe impl Send for Inner {}
unsafe impl Sync for Inner {}

static OPEN: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

/// How a client is opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    program: Option<String>,
    modules: Option<String>,
}

impl Options {
    /// As [`open`] does without.
    pub fn new() -> Options {
        Options::default()
    }

    /// The name that others see beside our locks; without it, that of this program.
    pub fn program(mut self, name: &str) -> Options {
        self.program = Some(name.to_owned());
        self
    }

    /// The directories in which modules of stores are looked for, with a colon between them; `HOLDFAST_MODULES` comes
    /// before it.
    pub fn modules(mut self, directories: &str) -> Options {
        self.modules = Some(directories.to_owned());
        self
    }

    /// Opens the store that the URL names; see [`open`].
    pub fn open(&self, url: &str) -> Result<Client> {
        check_version(&version())?;
        let c_url = c_text("the URL", url)?;
        let program = self.program.as_deref().map(|name| c_text("the program's name", name)).transpose()?;
        let modules = self.modules.as_deref().map(|list| c_text("the modules", list)).transpose()?;
        let options = sys::hf_client_options {
            size: std::mem::size_of::<sys::hf_client_options>(),
            program: program.as_ref().map_or(ptr::null(), |p| p.as_ptr()),
            modules: modules.as_ref().map_or(ptr::null(), |m| m.as_ptr()),
            metrics: 0,
            on_log: None,
            log_arg: ptr::null_mut(),
        };
        let url = if url.is_empty() { ptr::null() } else { c_url.as_ptr() };
        let mut c = ptr::null_mut();
        // SAFETY: both texts and the options live until it returns; it copies them.
        call(|err| unsafe { sys::hf_open(url, &options, &mut c, err) })?;
        let inner = Arc::new(Inner {
            c,
            closed: RwLock::new(false),
            pid: std::process::id(),
            // SAFETY: it is open.
            capabilities: unsafe { sys::hf_capabilities(c) },
            told: Mutex::new(Told { last_tag: 0, grants: HashMap::new(), releases: HashMap::new() }),
            pump: Mutex::new(None),
        });
        let mut open = unpoisoned(&OPEN);
        open.retain(|client| client.strong_count() > 0);
        open.push(Arc::downgrade(&inner));
        Ok(Client { inner })
    }
}

/// Opens the store that the URL names: `memory://name`, `sqlite:/path/locks.db`, `redis://host/0` ... If it is empty,
/// `HOLDFAST_URL` says which, or else it is a file of your own. A network store can be opened before it can be reached.
pub fn open(url: &str) -> Result<Client> {
    Options::new().open(url)
}

/// Of the library in use.
pub fn version() -> String {
    // SAFETY: a static text.
    unsafe { text(sys::hf_version()) }
}

pub(crate) fn check_version(library: &str) -> Result<()> {
    let minor = |version: &str| version.rsplit_once('.').map_or(String::new(), |(minor, _)| minor.to_owned());
    if minor(library) == minor(HEADER_VERSION) {
        return Ok(());
    }
    Err(Error::new(
        Code::Unsupported,
        format!("this program was built for libholdfast {HEADER_VERSION}, and the library it has found is {library}: build it again"),
    ))
}

/// Closes every client of this process, so that locks are given back: call it before [`std::process::exit`], which
/// drops nothing. A client in a `static` is not dropped at the end of `main` either.
pub fn close_all() {
    let open: Vec<_> = unpoisoned(&OPEN).drain(..).collect();
    open.iter().filter_map(Weak::upgrade).for_each(|inner| inner.close());
}

/// Text for C, which would stop at a NUL.
pub(crate) fn c_text(what: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::new(Code::Invalid, format!("{what} must not contain a NUL")))
}

impl Client {
    /// Describes the lock of this name; it holds nothing. A name is 1 to 512 bytes of any value.
    pub fn lock(&self, name: impl AsRef<[u8]>) -> Lock {
        Lock::new(self.inner.clone(), name.as_ref())
    }

    /// What the store can do.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities(self.inner.capabilities)
    }

    /// Releases every lock that is still held and ends all waits ([`Code::Closed`]). What is done with this client or
    /// its locks afterwards is refused.
    pub fn close(&self) {
        self.inner.close();
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("capabilities", &self.capabilities()).finish_non_exhaustive()
    }
}

impl Inner {
    /// Keeps the client open for a call into C.
    pub(crate) fn enter(&self, what: &str) -> Result<RwLockReadGuard<'_, bool>> {
        if self.is_forked() {
            return Err(Error::new(Code::Forked, format!("{what}: {}", Code::Forked.text())));
        }
        let closed = self.closed.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        if *closed {
            return Err(Error::new(Code::Closed, format!("{what}: the client is closed")));
        }
        Ok(closed)
    }

    /// In a child, no thread is left that would give back a mutex, or that could be joined.
    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.pid
    }

    fn close(&self) {
        if self.is_forked() {
            return;
        }
        {
            let mut closed = self.closed.write().unwrap_or_else(|poisoned| poisoned.into_inner());
            if std::mem::replace(&mut *closed, true) {
                return;
            }
        }
        let pump = unpoisoned(&self.pump).take();
        drop(pump); // ends its thread
                    // SAFETY: nobody is in C, and nobody enters any more.
        unsafe { sys::hf_close(self.c) };
        let (grants, releases) = {
            let mut told = unpoisoned(&self.told);
            (std::mem::take(&mut told.grants), std::mem::take(&mut told.releases))
        };
        for grant in grants.into_values() {
            grant.tell(Err(Error::new(Code::Closed, format!("acquire '{}': the client was closed", grant.shown()))));
            grant.lose(Cause::Closed);
        }
        for release in releases.into_values() {
            release.tell(Err(Error::new(Code::Closed, "release: the client was closed")));
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}
