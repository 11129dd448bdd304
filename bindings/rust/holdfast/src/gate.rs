//! A check at the resource that asks no store.
use std::ptr;

use holdfast_sys as sys;

use crate::client::c_text;
use crate::codes::Code;
use crate::error::{call, Error, Result};

/// Kept with a resource: refuses sequencers that are older than what it has seen. Save its levels with the resource's
/// data and restore them before the first request, or a restart forgets them.
pub struct Gate(*mut sys::hf_gate);

// SAFETY: the library allows every call from any thread.
unsafe impl Send for Gate {}
unsafe impl Sync for Gate {}

impl Gate {
    /// One that has seen nothing.
    pub fn new() -> Result<Gate> {
        let mut gate = ptr::null_mut();
        // SAFETY: it writes a pointer.
        match unsafe { sys::hf_gate_new(&mut gate) } {
            sys::HF_OK => Ok(Gate(gate)),
            code => Err(Error::of("gate", code)),
        }
    }

    /// Lets a sequencer through, or fails: [`Code::Stale`], [`Code::Invalid`], or [`Code::Unsupported`] (a grant with a
    /// limit has no order).
    pub fn pass(&self, sequencer: &str) -> Result<()> {
        let sequencer = c_text("the sequencer", sequencer)?;
        // SAFETY: the gate lives as long as this value.
        call(|err| unsafe { sys::hf_gate_pass(self.0, sequencer.as_ptr(), err) })
    }

    /// The newest tokens that have passed for this name: of exclusive grants, and of all. `None`: none has.
    pub fn levels(&self, name: impl AsRef<[u8]>) -> Result<Option<(u64, u64)>> {
        let (name, mut exclusive, mut highest) = (name.as_ref(), 0, 0);
        // SAFETY: as in pass().
        let code =
            unsafe { sys::hf_gate_levels(self.0, name.as_ptr().cast(), name.len(), &mut exclusive, &mut highest) };
        match code {
            sys::HF_OK => Ok(Some((exclusive, highest))),
            code if code == Code::NotFound as i32 => Ok(None),
            code => Err(Error::of("gate", code)),
        }
    }

    /// Raises the levels of this name, and never lowers them.
    pub fn restore(&self, name: impl AsRef<[u8]>, exclusive: u64, highest: u64) -> Result<()> {
        let name = name.as_ref();
        // SAFETY: as in pass().
        match unsafe { sys::hf_gate_restore(self.0, name.as_ptr().cast(), name.len(), exclusive, highest) } {
            sys::HF_OK => Ok(()),
            code => Err(Error::of("gate", code)),
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // SAFETY: its last use.
        unsafe { sys::hf_gate_free(self.0) };
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gate")
    }
}
