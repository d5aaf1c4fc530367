//! Tests with program headers as different linkers write them.
#![allow(unsafe_code)]

use super::super::remap::FilePlace;
use super::*;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::pread;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::os::fd::AsFd;

const RW: u32 = libc::PF_R | libc::PF_W;

fn load(flags: u32, address: usize, file_bytes: usize, nbytes: usize) -> Header {
    Header {
        kind: libc::PT_LOAD,
        flags,
        address,
        file_bytes,
        nbytes,
    }
}

fn relro(address: usize, nbytes: usize) -> Header {
    Header {
        kind: libc::PT_GNU_RELRO,
        flags: libc::PF_R,
        address,
        file_bytes: 0,
        nbytes,
    }
}

#[test]
fn relro_is_cut_off() {
    let headers = [
        load(libc::PF_R, 0, 0x600, 0x600),
        load(RW, 0x3dd0, 0x250, 0x9000),
        relro(0x3dd0, 0x230),
    ];
    let statics = Statics::of_headers(0x10000, &headers, 4096);
    assert_eq!(statics.start(), 0x14000);
    assert_eq!(statics.nbytes(), 0x9000);
    assert_eq!(statics.parts[0].file_bytes, 0x20);
    assert!(statics.contains(0, statics.nbytes()) && !statics.contains(1, statics.nbytes()));
}

#[test]
fn the_linker_keeps_the_page_in_which_relro_ends_writable() {
    let headers = [load(RW, 0x3000, 0x1800, 0x1800), relro(0x3000, 0x1400)];
    assert_eq!(Statics::of_headers(0, &headers, 4096).start(), 0x4000);
    let headers = [load(RW, 0x3100, 0x1800, 0x1800)];
    assert_eq!(Statics::of_headers(0, &headers, 4096).start(), 0x3000);
}

#[test]
fn several_segments_are_one_with_holes() {
    let headers = [
        load(RW, 0x3000, 0x1000, 0x1000),
        relro(0x3000, 0x1000),
        load(RW, 0x5000, 0x10, 0x20),
        load(RW, 0x8000, 0, 0x1001),
    ];
    let statics = Statics::of_headers(0, &headers, 4096);
    assert_eq!((statics.start(), statics.nbytes()), (0x5000, 0x5000));
    assert!(statics.contains(0xfff, 1) && statics.contains(0x3000, 0x2000));
    assert!(
        !statics.contains(0xfff, 2) && !statics.contains(0x2fff, 1) && !statics.contains(0, 0x5000)
    );
}

#[test]
fn a_program_without_variables_has_none() {
    let statics = Statics::of_headers(0, &[load(libc::PF_R, 0, 8, 8)], 4096);
    assert_eq!(statics.nbytes(), 0);
    assert!(!statics.contains(0, 1));
}

static HERE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(7);

#[test]
fn a_static_of_this_program_is_among_them() {
    let statics = Statics::of_program();
    let offset = HERE.as_ptr().addr() - statics.start();
    assert!(
        statics.contains(offset, 8) && !statics.of_static_program(),
        "{statics:?}"
    );
    let local = 5u64;
    assert!(!statics.contains((&raw const local).addr().wrapping_sub(statics.start()), 8));
}

#[test]
fn constants_are_in_segments_that_are_never_written() {
    let headers = [
        load(libc::PF_R, 0, 0x600, 0x600),
        load(libc::PF_R | libc::PF_X, 0x1000, 0x500, 0x500),
        load(RW, 0x3dd0, 0x250, 0x9000),
        relro(0x3dd0, 0x230),
    ];
    let statics = Statics::of_headers(0x10000, &headers, 4096);
    assert_eq!(
        statics.constant_at(0x10100, 0x500),
        Some(ConstantMemory::Equal)
    );
    assert_eq!(
        statics.constant_at(0x13e00, 8),
        Some(ConstantMemory::Relocated)
    );
    for (addr, nbytes) in [(0x10100, 0x501), (0x14000, 1), (0x100, 1), (0x1f000, 1)] {
        assert_eq!(statics.constant_at(addr, nbytes), None, "{addr:#x}");
    }
}

static CONSTANT: u64 = 0x1234_5678_9abc_def0;

#[test]
fn constants_of_this_program_are_identified() {
    let own = Statics::of_program();
    let address = (&raw const CONSTANT).expose_provenance();
    assert_eq!(own.constant_at(address, 8), Some(ConstantMemory::Equal));
    let identity = || own.identity_of_constants();
    assert!(identity().count() >= BUILD_ID.len());
    assert!(identity().eq(identity()));
}

/// The second part does not begin at a page, so the kernel does not map it.
#[test]
fn a_part_that_cannot_be_mapped_leaves_no_other_shared() {
    const PAGE: usize = 4096;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses.
    let variables = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            4 * PAGE,
            protection,
            MapFlags::PRIVATE,
        )
    };
    let variables: *mut u8 = variables.expect("memory").cast();
    // SAFETY: the first byte of the mapping.
    unsafe { variables.write_volatile(7) };

    let headers = [load(RW, 0, PAGE, PAGE), load(RW, 2 * PAGE + 16, PAGE, PAGE)];
    let statics = Statics::of_headers(variables.expose_provenance(), &headers, 16);
    let memory = memfd_create("test", MemfdFlags::CLOEXEC).expect("a memfd");
    let place = FilePlace {
        memory: memory.as_fd(),
        offset: 0,
    };
    let moved = statics.copy_and_map(place, PAGE, None);
    assert!(moved.is_err());

    // SAFETY: the first byte of the mapping.
    assert_eq!(unsafe { variables.read_volatile() }, 7);
    // SAFETY: the first byte of the mapping.
    unsafe { variables.write_volatile(8) };
    let mut in_file = [0; 1];
    assert_eq!(pread(&memory, &mut in_file, 0), Ok(1));
    assert_eq!(in_file, [7]);
}
