//! Copies symmetric ranges to and from other PEs, whether their memory is mapped here or not.
#![allow(unsafe_code)]

use crate::access::endpoints;
use crate::net::network::{self, LIBRARY_CALL};
use crate::observers;
use core::ffi::c_int;
use rushmem_pe::memory::address;
use rushmem_pe::memory::range::SymmetricRange;
use rushmem_transport::{
    Completion, DestBuf, Get, Pe, Put, RemoteAddr, SourceBuf, StridedBlocks, mem,
};
use std::mem::MaybeUninit;

/// Copies between a symmetric range of this PE and those of other PEs.
pub trait CopyBetweenPes {
    /// Copies the bytes to `dest` on `pe`, which may be this PE. The copy is complete on return, or
    /// ordered before a signal to `pe` that the library sends later.
    fn copy_to(self, pe: Pe, dest: SymmetricRange);

    /// Copies `source` on `pe` to these bytes.
    fn copy_from(self, pe: Pe, source: SymmetricRange);

    /// Returns a copy of these bytes on `pe`, which `pe` must not change during the call.
    fn read(self, pe: Pe) -> Vec<u8>;

    /// Starts a copy to the image on `pe`, which may take until [`complete_copies`]. The bytes must
    /// not change before that.
    ///
    /// # Panics
    /// If the range is private memory.
    fn start_copy_to_image(self, pe: Pe);

    /// Copies these bytes on each of `pes`, which are not mapped here, to the private memory
    /// `into`, one copy behind the other.
    fn fetch(self, pes: &[Pe], into: &mut [MaybeUninit<u8>]);

    /// Copies `nelems` elements of `elem_bytes` bytes to `dest` on `pe`. Successive elements are
    /// `sst` elements apart here and `dst` elements apart there.
    fn copy_strided_to(
        self,
        pe: Pe,
        dest: SymmetricRange,
        dst: usize,
        sst: usize,
        nelems: usize,
        elem_bytes: usize,
    );
}

impl CopyBetweenPes for SymmetricRange {
    fn copy_to(self, pe: Pe, dest: SymmetricRange) {
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
            None => unsafe { put(pe, dest.remote(0), self.start(), self.nbytes()) },
        }
    }

    fn copy_from(self, pe: Pe, source: SymmetricRange) {
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
        let get = Get {
            remote: source.remote(0),
            // SAFETY: the destination is memory of this process with that many bytes, and the get
            // has written it on return.
            local: unsafe { DestBuf::new(self.start(), nbytes) },
            completion: Completion::Now,
        };
        let done = endpoints::library_endpoint().get(pe, get);
        network::or_fail(LIBRARY_CALL, done);
    }

    fn read(self, pe: Pe) -> Vec<u8> {
        let mut bytes = vec![MaybeUninit::uninit(); self.nbytes()];
        SymmetricRange::of_private(&mut bytes).copy_from(pe, self);
        // SAFETY: `copy_from` has written all bytes.
        bytes
            .into_iter()
            .map(|byte| unsafe { byte.assume_init() })
            .collect()
    }

    fn start_copy_to_image(self, pe: Pe) {
        if self.on(pe).is_some() || address::statics_are_apart(pe.0 as c_int) {
            return self.copy_to(pe, self);
        }
        observers::report_copy_to(pe.index(), self.nbytes());
        let put = Put {
            remote: self.remote(0),
            // SAFETY: the source has an image, so it is symmetric memory, which stays mapped for
            // the life of the process.
            local: unsafe { SourceBuf::new(self.start(), self.nbytes()) },
            completion: Completion::AtQuiet,
        };
        let done = endpoints::library_endpoint().put(pe, put);
        network::or_fail(LIBRARY_CALL, done);
    }

    fn fetch(self, pes: &[Pe], into: &mut [MaybeUninit<u8>]) {
        let nbytes = self.nbytes();
        assert!(
            pes.len() * nbytes <= into.len(),
            "too little room for {} blocks",
            pes.len()
        );
        let several = pes.len() > 1;
        let completion = if several {
            Completion::AtQuiet
        } else {
            Completion::Now
        };
        for (i, &pe) in pes.iter().enumerate() {
            observers::report_copy_from(pe.index(), nbytes);
            let to = into[i * nbytes..].as_mut_ptr().cast();
            let get = Get {
                remote: self.remote(0),
                // SAFETY: `into` is borrowed until the copies are complete below, and the assertion
                // above shows that it has room for them.
                local: unsafe { DestBuf::new(to, nbytes) },
                completion,
            };
            let done = endpoints::library_endpoint().get(pe, get);
            network::or_fail(LIBRARY_CALL, done);
        }
        if several {
            complete_copies();
        }
    }

    fn copy_strided_to(
        self,
        pe: Pe,
        dest: SymmetricRange,
        dst: usize,
        sst: usize,
        nelems: usize,
        elem_bytes: usize,
    ) {
        let needed = |stride: usize| nelems.saturating_sub(1) * stride * elem_bytes + elem_bytes;
        if nelems == 0 {
            return;
        }
        assert!(
            needed(dst) <= dest.nbytes() && needed(sst) <= self.nbytes(),
            "a stride too far"
        );
        observers::report_copy_to(pe.index(), nelems * elem_bytes);
        let from = self.start().cast_const();
        let Some(start) = dest.on(pe) else {
            let remote = dest.remote(0);
            if dst == 1 && sst == 1 {
                // SAFETY: the assertion above shows that this range has these bytes.
                return unsafe { put(pe, remote, from, nelems * elem_bytes) };
            }
            // SAFETY: the assertion above shows that this range holds every element.
            let local = unsafe { SourceBuf::new(from, needed(sst)) };
            let blocks = StridedBlocks {
                remote,
                local,
                nbytes: elem_bytes,
                remote_stride: dst * elem_bytes,
                local_stride: sst * elem_bytes,
                n: nelems,
            };
            let done = endpoints::library_endpoint().put_strided(pe, blocks);
            network::or_fail(LIBRARY_CALL, done);
            return complete_before_flags(pe);
        };
        macro_rules! of {
            ($t:ty) => {
                // SAFETY: both ranges are mapped here, and the assertion above shows that they hold
                // every element.
                unsafe {
                    let (dst, sst) = (dst as isize, sst as isize);
                    mem::copy_strided::<mem::AtomicLoads, $t>(
                        start.cast(),
                        from.cast(),
                        dst,
                        sst,
                        1,
                        nelems,
                    )
                }
            };
        }
        match elem_bytes {
            1 => of!(u8),
            2 => of!(u16),
            4 => of!(u32),
            8 => of!(u64),
            16 => of!(u128),
            _ => (0..nelems).for_each(|i| {
                let (to, from) = (i * dst * elem_bytes, i * sst * elem_bytes);
                let from = self.start().wrapping_add(from);
                let to = start.wrapping_add(to);
                // SAFETY: as above: an element of each range.
                unsafe { mem::copy_bytes::<mem::AtomicLoads>(to, from, elem_bytes) }
            }),
        }
    }
}

/// Waits until the copies that [`start_copy_to_image`](CopyBetweenPes::start_copy_to_image) has
/// started are complete, locally and remotely.
pub fn complete_copies() {
    if network::is_open() {
        let done = endpoints::library_endpoint().quiet();
        network::or_fail(LIBRARY_CALL, done);
    }
}

/// Copies to memory of `pe` that is not mapped here.
///
/// # Safety
/// `source` is valid for reads of `nbytes` bytes.
unsafe fn put(pe: Pe, dest: RemoteAddr, source: *const u8, nbytes: usize) {
    let put = Put {
        remote: dest,
        // SAFETY: the caller's promise about `source`.
        local: unsafe { SourceBuf::new(source, nbytes) },
        completion: Completion::Now,
    };
    let done = endpoints::library_endpoint().put(pe, put);
    network::or_fail(LIBRARY_CALL, done);
    complete_before_flags(pe);
}

/// Completes the puts of the library to `pe` if this CPU sets the flags of `pe`, which the network
/// does not order after the data.
fn complete_before_flags(pe: Pe) {
    if address::statics_are_apart(pe.0 as c_int) {
        let done = endpoints::library_endpoint().pe_quiet(pe);
        network::or_fail(LIBRARY_CALL, done);
    }
}
