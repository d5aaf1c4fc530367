//! A provider of libfabric for tests. It moves bytes between processes of one machine by copying them, and each of its
//! domains behaves as the rules of a fabric demand that cannot be had here: Slingshot (`cxi`), EFA, Omni-Path (`opx`),
//! `psm3` and a fabric of several rails (`mrail`). An application that breaks a rule ends with a message that names the rule. The domain `copy` checks
//! nothing and costs next to nothing, for measuring what is above libfabric.
//!
//! libfabric finds it where `FI_PROVIDER_PATH` names the [`folder`]. The provider's name is `strict`; a domain is named like its profile.
//!
//! - `profile` is the table of what the profiles demand and offer, `rule` what happens to those who break it;
//! - `offer`, `fabric`, `domain`, `registration`, `table`, `queue` and `endpoint` are libfabric's objects, made of what is in `object`;
//!   `call` has the calls on an endpoint;
//! - `engine` is what an endpoint does with each `operation`: when it is carried out (`order` and `pattern` tell), and who learns of
//!   it, which `done` keeps until it is read; `lent` finds out who uses too early what was lent for an operation (`known` has
//!   the registrations, `raw` the keys that are mapped), and `letter`
//!   is how a target learns of one;
//! - `segment` is what processes share, `reach` how a peer's registered memory is found, `memory` how bytes get there, `word` what
//!   atomic operations do;
//! - `gate` is a lock.
//!
//! It must never know who uses it.
#![allow(unsafe_code)]

mod call;
mod domain;
mod done;
mod endpoint;
mod engine;
mod fabric;
mod gate;
mod known;
mod lent;
mod letter;
mod memory;
mod object;
mod offer;
mod operation;
mod order;
mod pattern;
mod profile;
mod queue;
mod raw;
mod reach;
mod registration;
mod rule;
mod segment;
mod table;
mod word;

use libfabric_sys as fi;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io, process};

/// The file that libfabric looks for: its names end in `-fi.so`.
const FILE: &str = "libstrict-fi.so";

unsafe extern "C" fn cleanup() {}

/// What libfabric calls when it has opened this library.
///
/// # Safety
/// libfabric's contract: it is called once, and what it returns is libfabric's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fi_prov_ini() -> *mut fi::fi_provider {
    memory::open_to_others();
    Box::leak(Box::new(fi::fi_provider {
        version: offer::VERSION,
        fi_version: offer::HEADERS,
        context: fi::fi_context { internal: [std::ptr::null_mut(); 4] },
        name: c"strict".as_ptr(),
        getinfo: Some(offer::getinfo),
        fabric: Some(fabric::fabric),
        cleanup: Some(cleanup),
    }))
}

/// Makes a folder in `parent` that has the provider alone, for `FI_PROVIDER_PATH`. The provider is what cargo built beside the
/// program that runs.
///
/// # Errors
/// When it is not there, or the kernel refuses.
pub fn folder(parent: &Path) -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let built = program.with_file_name("libstrict_fabric.so");
    if !built.exists() {
        return Err(io::Error::other(format!("{} is not there", built.display())));
    }
    let folder = parent.join("strict-fabric");
    fs::create_dir_all(&folder)?;
    // Several programs and threads may do so at once: a link is there, or is not.
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let made = folder.join(format!("{}-{number}.new", process::id()));
    let link = folder.join(FILE);
    std::os::unix::fs::symlink(built, &made)?;
    fs::rename(made, link)?;
    Ok(folder)
}
