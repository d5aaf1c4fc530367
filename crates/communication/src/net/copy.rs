//! Copies symmetric ranges to and from other PEs, whether their memory is mapped here or not.
#![allow(unsafe_code)]

use crate::access::endpoints::Endpoints;
use crate::net::network::{self, LIBRARY_CALL};
use crate::observers;
use core::ffi::c_int;
use rushmem_pe::memory::address;
use rushmem_pe::memory::range::SymmetricRange;
use rushmem_transport::mem::Element;
use rushmem_transport::{
    Completion, DestBuf, Get, Pe, Put, RemoteAddr, SourceBuf, StridedBlocks, mem,
};
use std::mem::MaybeUninit;

/// Copies between a symmetric range of this PE and those of other PEs.
pub trait CopyBetweenPes {
    /// Copies the bytes to `dest` on `pe`, which may be this PE. The copy is complete on return, or
    /// ordered before a signal to `pe` that the library sends later.
    fn copy_to(self, endpoints: &Endpoints, pe: Pe, dest: SymmetricRange);

    /// Copies `source` on `pe` to these bytes.
    fn copy_from(self, endpoints: &Endpoints, pe: Pe, source: SymmetricRange);

    /// Returns a copy of these bytes on `pe`, which `pe` must not change during the call.
    fn read(self, endpoints: &Endpoints, pe: Pe) -> Vec<u8>;

    /// Starts a copy to the image on `pe`, which may take until [`complete_copies`]. The bytes must
    /// not change before that.
    ///
    /// # Panics
    /// If the range is private memory.
    fn start_copy_to_image(self, endpoints: &Endpoints, pe: Pe);

    /// Copies `elements` of these bytes to `dest` on `pe`.
    fn copy_strided_to(
        self,
        endpoints: &Endpoints,
        pe: Pe,
        dest: SymmetricRange,
        elements: StridedElements,
    );
}

/// Elements of an array here, and their places in an array there.
#[derive(Clone, Copy)]
pub struct StridedElements {
    /// The distance of successive elements there, in elements.
    pub dst: usize,
    /// The distance of successive elements here, in elements.
    pub sst: usize,
    /// The number of elements.
    pub nelems: usize,
    /// The size of an element in bytes.
    pub elem_bytes: usize,
}

impl CopyBetweenPes for SymmetricRange {
    fn copy_to(self, endpoints: &Endpoints, pe: Pe, dest: SymmetricRange) {
        assert!(
            self.nbytes() <= dest.nbytes(),
            "{} bytes into {}",
            self.nbytes(),
            dest.nbytes()
        );
        observers::report_copy_to(pe.index(), self.nbytes());

        match dest.on(pe) {
            // SAFETY: the source is memory of this process, symmetric or private, and `to` is
            // mapped here. The assertion shows that it is long enough.
            Some(to) => unsafe {
                mem::copy_bytes::<mem::AtomicLoads>(to, self.start(), self.nbytes())
            },
            // SAFETY: the source is memory of this process with that many bytes.
            None => unsafe { put(endpoints, pe, dest.remote(pe), self.start(), self.nbytes()) },
        }
    }

    fn copy_from(self, endpoints: &Endpoints, pe: Pe, source: SymmetricRange) {
        let nbytes = source.nbytes();
        assert!(
            nbytes <= self.nbytes(),
            "{nbytes} bytes into {}",
            self.nbytes()
        );
        observers::report_copy_from(pe.index(), nbytes);

        if let Some(from) = source.on(pe) {
            // SAFETY: the destination is memory of this process, symmetric or private, and `from`
            // is mapped here. The assertion shows that the destination is long enough.
            return unsafe { mem::copy_bytes::<mem::AtomicLoads>(self.start(), from, nbytes) };
        }
        get(endpoints, pe, source, self, Completion::Now);
    }

    fn read(self, endpoints: &Endpoints, pe: Pe) -> Vec<u8> {
        let mut bytes = vec![MaybeUninit::uninit(); self.nbytes()];
        SymmetricRange::of_private(&mut bytes).copy_from(endpoints, pe, self);

        // SAFETY: `copy_from` has written all bytes.
        bytes
            .into_iter()
            .map(|byte| unsafe { byte.assume_init() })
            .collect()
    }

    fn start_copy_to_image(self, endpoints: &Endpoints, pe: Pe) {
        // Memory that is mapped here is copied by this CPU. If this CPU only sets the flags of
        // `pe`, the network does not order them after a copy that is still in flight, so the copy
        // is completed at once.
        if self.on(pe).is_some() || address::statics_are_apart(pe.0 as c_int) {
            return self.copy_to(endpoints, pe, self);
        }

        observers::report_copy_to(pe.index(), self.nbytes());
        let put = Put {
            remote: self.remote(pe),
            // SAFETY: the source has an image, so it is symmetric memory, which stays mapped for
            // the life of the process.
            local: unsafe { SourceBuf::new(self.start(), self.nbytes()) },
            completion: Completion::AtQuiet,
        };
        let done = endpoints.of_library().put(pe, put);
        network::or_fail(LIBRARY_CALL, done);
    }

    fn copy_strided_to(
        self,
        endpoints: &Endpoints,
        pe: Pe,
        dest: SymmetricRange,
        elements: StridedElements,
    ) {
        if elements.nelems == 0 {
            return;
        }
        assert!(
            elements.span(elements.dst) <= dest.nbytes()
                && elements.span(elements.sst) <= self.nbytes(),
            "elements beyond their range"
        );

        observers::report_copy_to(pe.index(), elements.nelems * elements.elem_bytes);
        match dest.on(pe) {
            // SAFETY: both ranges are mapped here, the source possibly as a constant of the
            // program, and the assertion shows that they hold every element.
            Some(to) => unsafe { elements.copy_mapped(to, self.start()) },
            // SAFETY: the assertion shows that this range holds every element.
            None => unsafe { elements.put(endpoints, pe, dest.remote(pe), self.start()) },
        }
    }
}

impl StridedElements {
    /// Returns the number of bytes from the first element to the end of the last one, which are
    /// `stride` elements apart. There is at least one.
    fn span(self, stride: usize) -> usize {
        (self.nelems - 1) * stride * self.elem_bytes + self.elem_bytes
    }

    /// Copies the elements from `from` to `to`.
    ///
    /// # Safety
    /// Every element is valid at `from` as [`mem::AtomicLoads`] says, and for writes at `to`.
    unsafe fn copy_mapped(self, to: *mut u8, from: *const u8) {
        // The strided copy of the transport takes elements of an integer's size, of which it copies
        // two at a time.
        let copy: unsafe fn(Self, *mut u8, *const u8) = match self.elem_bytes {
            1 => Self::copy_as::<u8>,
            2 => Self::copy_as::<u16>,
            4 => Self::copy_as::<u32>,
            8 => Self::copy_as::<u64>,
            16 => Self::copy_as::<u128>,
            _ => Self::copy_by_bytes,
        };
        // SAFETY: every element is valid in both places by contract, and has the size of the type.
        unsafe { copy(self, to, from) }
    }

    /// Copies the elements as values of `T`.
    ///
    /// # Safety
    /// As [`copy_mapped`](Self::copy_mapped), and an element has the size of `T`.
    unsafe fn copy_as<T: Element>(self, to: *mut u8, from: *const u8) {
        let to = to.cast::<T>();
        let from = from.cast::<T>();
        let dst = self.dst as isize;
        let sst = self.sst as isize;
        // SAFETY: each element is a block of one `T`, and valid in both places by contract.
        unsafe { mem::copy_strided::<mem::AtomicLoads, T>(to, from, dst, sst, 1, self.nelems) }
    }

    /// Copies the elements, which have any size.
    ///
    /// # Safety
    /// As [`copy_mapped`](Self::copy_mapped).
    unsafe fn copy_by_bytes(self, to: *mut u8, from: *const u8) {
        for i in 0..self.nelems {
            let to = to.wrapping_add(i * self.dst * self.elem_bytes);
            let from = from.wrapping_add(i * self.sst * self.elem_bytes);
            // SAFETY: element `i` is valid in both places by contract.
            unsafe { mem::copy_bytes::<mem::AtomicLoads>(to, from, self.elem_bytes) }
        }
    }

    /// Puts the elements from `source` to `dest` on `pe`, which is not mapped here.
    ///
    /// # Safety
    /// Every element is valid for reads at `source`.
    unsafe fn put(self, endpoints: &Endpoints, pe: Pe, dest: RemoteAddr, source: *const u8) {
        if self.dst == 1 && self.sst == 1 {
            let nbytes = self.nelems * self.elem_bytes;
            // SAFETY: the elements are contiguous, and valid for reads at `source` by contract.
            return unsafe { put(endpoints, pe, dest, source, nbytes) };
        }

        let blocks = StridedBlocks {
            remote: dest,
            // SAFETY: an operation reads only the elements of the span, which are valid for reads
            // by contract.
            local: unsafe { SourceBuf::new(source, self.span(self.sst)) },
            nbytes: self.elem_bytes,
            remote_stride: self.dst * self.elem_bytes,
            local_stride: self.sst * self.elem_bytes,
            n: self.nelems,
        };
        let done = endpoints.of_library().put_strided(pe, blocks);
        network::or_fail(LIBRARY_CALL, done);
        complete_before_flags(endpoints, pe);
    }
}

/// A copy of bytes of a PE to memory of this process.
#[derive(Clone, Copy)]
pub struct Fetch {
    /// The PE that has the bytes.
    pub pe: Pe,
    /// The bytes there.
    pub source: SymmetricRange,
    /// Where they are copied, symmetric or private memory of the same size.
    pub dest: SymmetricRange,
}

/// Makes these copies. Those over a network are in flight together.
pub fn fetch(endpoints: &Endpoints, copies: impl Iterator<Item = Fetch>) {
    let (mapped, apart): (Vec<Fetch>, Vec<Fetch>) =
        copies.partition(|copy| copy.source.on(copy.pe).is_some());

    // One quiet completes several gets. One get completes itself, without a quiet, which would also
    // complete what else the library has issued.
    let are_several = apart.len() > 1;
    let completion = if are_several {
        Completion::AtQuiet
    } else {
        Completion::Now
    };
    for Fetch { pe, source, dest } in apart {
        observers::report_copy_from(pe.index(), source.nbytes());
        get(endpoints, pe, source, dest, completion);
    }

    for Fetch { pe, source, dest } in mapped {
        dest.copy_from(endpoints, pe, source);
    }
    if are_several {
        complete_copies(endpoints);
    }
}

/// Waits until the copies that [`start_copy_to_image`](CopyBetweenPes::start_copy_to_image) has
/// started are complete, locally and remotely. The network is open.
pub fn complete_copies(endpoints: &Endpoints) {
    let done = endpoints.of_library().quiet();
    network::or_fail(LIBRARY_CALL, done);
}

/// Copies `source` on `pe`, which is not mapped here, to `dest`.
fn get(
    endpoints: &Endpoints,
    pe: Pe,
    source: SymmetricRange,
    dest: SymmetricRange,
    completion: Completion,
) {
    let nbytes = source.nbytes();
    assert!(
        nbytes <= dest.nbytes(),
        "{nbytes} bytes into {}",
        dest.nbytes()
    );

    let get = Get {
        remote: source.remote(pe),
        // SAFETY: the destination is memory of this process with that many bytes, and the get has
        // written it before the caller returns.
        local: unsafe { DestBuf::new(dest.start(), nbytes) },
        completion,
    };
    let done = endpoints.of_library().get(pe, get);
    network::or_fail(LIBRARY_CALL, done);
}

/// Copies to memory of `pe` that is not mapped here.
///
/// # Safety
/// `source` is valid for reads of `nbytes` bytes.
unsafe fn put(endpoints: &Endpoints, pe: Pe, dest: RemoteAddr, source: *const u8, nbytes: usize) {
    let put = Put {
        remote: dest,
        // SAFETY: the caller promises that `source` is valid for reads of `nbytes` bytes, which the
        // put has read when it returns.
        local: unsafe { SourceBuf::new(source, nbytes) },
        completion: Completion::Now,
    };
    let done = endpoints.of_library().put(pe, put);
    network::or_fail(LIBRARY_CALL, done);
    complete_before_flags(endpoints, pe);
}

/// Completes the puts of the library to `pe` if this CPU sets the flags of `pe`: the network does
/// not order them after the data.
fn complete_before_flags(endpoints: &Endpoints, pe: Pe) {
    if address::statics_are_apart(pe.0 as c_int) {
        let done = endpoints.of_library().pe_quiet(pe);
        network::or_fail(LIBRARY_CALL, done);
    }
}
