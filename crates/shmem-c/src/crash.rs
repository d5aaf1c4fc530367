//! Reports crashes of programs that use librushmem, from the time at which it is loaded. The report
//! uses memory of its own, so librushmem has a global allocator for it. Programs in Rust choose
//! their own allocator and handlers, so this is not compiled into rushmem-c.
#![allow(unsafe_code)]

use rushmem_runtime::crash::{install_at_load, memory::CrashAllocator};

#[global_allocator]
static ALLOCATOR: CrashAllocator = CrashAllocator;

/// Called by the dynamic linker, or by the C library in a static program.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    install_at_load();
}
