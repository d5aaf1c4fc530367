//! A libfabric provider for tests, which emulates fabrics that are not available here. It transfers
//! data between processes of one machine by copying.
//!
//! Each domain has the rules of a fabric: Slingshot (`cxi`), EFA, Omni-Path (`opx`), `psm3`, a
//! fabric of several rails (`mrail`), a NIC with few atomic operations (`few`), and further ones
//! with a single limit or fault, such as few connections or registrations (see `profile`). A
//! process that violates a rule is aborted with a message that names the rule. The domain `copy`
//! checks almost nothing and has little overhead, for measuring the software above libfabric.
//!
//! libfabric loads the provider if `FI_PROVIDER_PATH` names the directory that [`dir`] creates. The
//! provider is named `strict`, and each domain has the name of its profile.
//!
//! - Rules: `profile` (the table of all profiles), `reuse` (of buffers before completion),
//!   `connections` (and their limits).
//! - Objects of libfabric: `info`, `fabric`, `domain`, `registration`, `address_vector`, `queue`,
//!   `endpoint`; `object` has what they share, `call` the data transfer functions.
//! - Operations: `engine` performs each `operation`, in a random order that `order` permits; `slot`
//!   encodes those that the target performs.
//! - Memory: `segment` (shared by processes), `remote` (registrations of peers), `local_regions`
//!   and `raw_key` (own registrations), `memory` (copying), `atomic`.
#![allow(unsafe_code)]

mod address_vector;
mod atomic;
mod call;
mod connections;
mod domain;
mod endpoint;
mod engine;
mod fabric;
mod info;
mod local_regions;
mod memory;
mod object;
mod operation;
mod order;
mod profile;
mod queue;
mod raw_key;
mod registration;
mod remote;
mod reuse;
mod segment;
mod slot;

use libfabric_sys as fi;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io, process};

/// The file name; libfabric loads files whose names end in `-fi.so`.
const FILE: &str = "libstrict-fi.so";

/// Does nothing: the operating system frees what the provider has when the process ends.
unsafe extern "C" fn cleanup() {}

/// Returns the entry point of the provider.
///
/// # Safety
/// Called once, by libfabric, which then owns the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fi_prov_ini() -> *mut fi::fi_provider {
    memory::permit_access();
    Box::leak(Box::new(fi::fi_provider {
        version: info::VERSION,
        fi_version: info::HEADERS,
        context: fi::fi_context {
            internal: [std::ptr::null_mut(); 4],
        },
        name: c"strict".as_ptr(),
        getinfo: Some(info::getinfo),
        fabric: Some(fabric::fabric),
        cleanup: Some(cleanup),
    }))
}

/// Makes libfabric find the provider in this process, unless `FI_PROVIDER_PATH` is set already.
///
/// # Panics
/// If the directory of the provider cannot be created.
///
/// # Safety
/// The process has one thread.
pub unsafe fn offer(parent: &Path) {
    const VARIABLE: &str = "FI_PROVIDER_PATH";
    if std::env::var_os(VARIABLE).is_none() {
        let dir = dir(parent).expect("the provider was built");
        // SAFETY: the process has one thread, by contract.
        unsafe { std::env::set_var(VARIABLE, dir) };
    }
}

/// Creates a directory in `parent` that contains only the provider, for `FI_PROVIDER_PATH`. Cargo
/// has built the provider beside the running program.
///
/// # Errors
/// If the provider does not exist, or the directory cannot be created.
pub fn dir(parent: &Path) -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let built = program.with_file_name("libstrict_fabric.so");
    if !built.exists() {
        return Err(io::Error::other(format!(
            "{} is not there",
            built.display()
        )));
    }

    let dir = parent.join("strict-fabric");
    fs::create_dir_all(&dir)?;

    // Several processes and threads may do this at once, so the link is replaced atomically.
    static CREATED: AtomicU32 = AtomicU32::new(0);
    let number = CREATED.fetch_add(1, Ordering::Relaxed);
    let new = dir.join(format!("{}-{number}.new", process::id()));
    std::os::unix::fs::symlink(built, &new)?;
    fs::rename(new, dir.join(FILE))?;
    Ok(dir)
}
