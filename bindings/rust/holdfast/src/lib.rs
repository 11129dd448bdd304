#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod admin;
mod client;
#[rustfmt::skip] // made by a script
mod codes;
mod error;
mod events;
mod gate;
mod held;
mod lock;

pub use admin::{stores, Entry, Finding, Place, Query, StoreInfo};
pub use client::{close_all, open, version, Client, Options};
pub use codes::*;
pub use error::{Error, Result};
pub use gate::Gate;
pub use held::{Held, Lost, NotDetached, State};
pub use lock::{Cancel, Lock, Mode, Owner};

/// What a store can do, as bits of [`capability`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Capabilities(pub u32);

impl Capabilities {
    /// Whether all of these bits are there.
    pub fn contains(self, bits: u32) -> bool {
        self.0 & bits == bits
    }
}

impl std::fmt::Display for Capabilities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = capability::NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        f.write_str(&words.map(|(_, name)| *name).collect::<Vec<_>>().join(" "))
    }
}

impl std::fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Capabilities({self})")
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}
