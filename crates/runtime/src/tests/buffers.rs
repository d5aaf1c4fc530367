//! Buffers that PEs register at places of their own: where each PE finds those of the others, and
//! that all PEs refuse one alike.
#![allow(unsafe_code)]

use super::kit::{Shape, TestPe, job};
use super::releases::open_heap;
use crate::api::buffers::{register, unregister};
use rushmem_heap::pages::PAGE;
use rushmem_pe::extension_constants::SHMEMX_BUFFER_PINNED;
use rushmem_transport::Pe;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::ptr::{null_mut, with_exposed_provenance};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const BUFFERS: usize = 12;
/// The bytes from one buffer to the next: less than a page, so that buffers share pages.
const DISTANCE: usize = 3600;
/// The pages of a PE: the buffers, each of which a PE moves by some cache lines, and a page of
/// reserve.
const BYTES: usize = (BUFFERS * DISTANCE).next_multiple_of(PAGE) + PAGE;

/// Whole pages of the program.
struct Pages(*mut u8);

impl Pages {
    const LAYOUT: Layout = match Layout::from_size_align(BYTES, PAGE) {
        Ok(layout) => layout,
        Err(_) => panic!("pages have a layout"),
    };

    fn new() -> Pages {
        // SAFETY: the layout has bytes.
        Pages(unsafe { alloc_zeroed(Self::LAYOUT) })
    }

    fn at(&self, offset: usize) -> *mut c_void {
        self.0.wrapping_add(offset).cast()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; all registrations have ended.
        unsafe { dealloc(self.0, Self::LAYOUT) }
    }
}

/// Returns the word at an address.
///
/// # Safety
/// The word is aligned, and is in a buffer or in the heap, which are mapped as long as it is used.
unsafe fn word<'a>(address: usize) -> &'a AtomicU64 {
    // SAFETY: as this function requires.
    unsafe { &*with_exposed_provenance(address) }
}

/// The value of a buffer of a PE.
fn value(pe: usize, number: usize) -> u64 {
    1 + (pe * BUFFERS + number) as u64
}

/// Checks that this PE finds a buffer of each PE whose memory is mapped here.
fn require_everywhere(pe: TestPe, start: usize, number: usize) {
    let buffer = pe.job().map.buffers().find(start, 8);
    let buffer = buffer.expect("it is registered");
    for other in 0..pe.n() {
        if let Some(delta) = buffer.images.deltas().of(Pe(other as u32)) {
            // SAFETY: the image of the buffer in the heap of a PE whose memory is mapped here.
            let there = unsafe { word(buffer.in_heap.wrapping_add_signed(delta)) };
            assert_eq!(there.load(Relaxed), value(other, number), "on PE {other}");
        }
    }
}

/// The numbers of the buffers in an order that all PEs have.
fn order(rng: &mut fastrand::Rng) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..BUFFERS).collect();
    rng.shuffle(&mut numbers);
    numbers
}

/// Buffers that share pages, in any order, each at another place of its page on each PE.
#[test]
fn each_pe_finds_the_buffers_of_all() {
    let shapes = [
        Shape::of(&[1]),
        Shape::of(&[4]),
        Shape::of(&[2, 1]).threads(),
        Shape::over_tcp(&[2, 1]),
    ];
    for shape in shapes {
        job(&shape.late(30).kept(), |pe| {
            open_heap(pe);
            let me = pe.me();
            let pages = Pages::new();
            let start = |number: usize| pages.at(number * DISTANCE + 64 * me);
            let mut rng = fastrand::Rng::with_seed(7);
            for _ in 0..3 {
                let mut registered = Vec::new();
                for number in order(&mut rng) {
                    let nbytes = 16 * rng.usize(1..DISTANCE / 16);
                    let addr = start(number);
                    // SAFETY: a word of this thread's pages.
                    unsafe { word(addr.expose_provenance()) }.store(value(me, number), Relaxed);
                    // SAFETY: memory of this thread alone, and no PE uses the others meanwhile.
                    assert_eq!(unsafe { register(pe, addr, nbytes, 0) }, addr);

                    registered.push(number);
                    for &number in &registered {
                        require_everywhere(pe, start(number).addr(), number);
                    }
                    pe.sync_all();
                }
                for number in order(&mut rng) {
                    let addr = start(number);
                    // SAFETY: no PE uses the buffers any more, after the barrier of the call.
                    assert_eq!(unsafe { unregister(pe, addr) }, 0);
                    assert!(pe.job().map.buffers().find(addr.addr(), 1).is_none());
                    // SAFETY: a word of this thread's pages.
                    let kept = unsafe { word(addr.addr()) }.load(Relaxed);
                    assert_eq!(kept, value(me, number));
                }
                let allocator = pe.job().allocator();
                assert_eq!(allocator.as_ref().map(|heap| heap.in_use()), Some(0));
            }
        });
    }
}

/// What one PE cannot register, no PE has registered.
#[test]
fn a_bad_pe_alone_is_refused_on_all() {
    job(&Shape::of(&[3]).late(31).kept(), |pe| {
        open_heap(pe);
        let pages = Pages::new();
        let is_bad = pe.me() == 1;
        let unknown = if is_bad { SHMEMX_BUFFER_PINNED << 1 } else { 0 };
        let unaligned = pages.at(if is_bad { 8 } else { 0 });
        let nowhere = if is_bad {
            null_mut::<c_void>()
        } else {
            pages.at(0)
        };
        let in_heap = if is_bad {
            pe.job().memory.heap().cast()
        } else {
            pages.at(0)
        };
        for (addr, options) in [
            (pages.at(0), unknown),
            (unaligned, 0),
            (nowhere, 0),
            (in_heap, 0),
        ] {
            // SAFETY: it is refused.
            assert!(unsafe { register(pe, addr, 1000, options) }.is_null());
            assert!(!pe.job().map.buffers().are_any());
            let allocator = pe.job().allocator();
            assert_eq!(allocator.as_ref().map(|heap| heap.in_use()), Some(0));
        }

        // SAFETY: a word of this thread's pages.
        unsafe { word(pages.at(0).expose_provenance()) }.store(value(pe.me(), 0), Relaxed);
        // SAFETY: memory of this thread alone.
        let pinned = unsafe { register(pe, pages.at(0), 1000, SHMEMX_BUFFER_PINNED) };
        let offset = pinned.addr().wrapping_sub(pe.job().memory.heap().addr());
        assert!(
            offset < pe.job().memory.layout().heap_bytes(),
            "equal on all"
        );
        require_everywhere(pe, pages.at(0).addr(), 0);
        // SAFETY: no PE uses the buffer any more, after the barrier of the call.
        assert_eq!(unsafe { unregister(pe, pages.at(0)) }, 0);
    });
}
