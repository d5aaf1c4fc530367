//! Crashes of programs that use librushmem: reported from its load on, with memory apart from the
//! program's. Programs in Rust have an allocator, and handlers of crashes, of their own.
#![allow(unsafe_code)]

use rushmem_runtime::crash::{install_at_load, memory::CrashAllocator};

#[global_allocator]
static ALLOCATOR: CrashAllocator = CrashAllocator;

/// Run by the dynamic linker, or by the C library in a static program.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    install_at_load();
}
