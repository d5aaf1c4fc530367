//! Several elements at once, for the operators of reductions: the compiler does not vectorize a
//! loop over atomic words.
//!
//! The loads and stores are vector instructions in inline assembly. They are opaque to the
//! compiler, and defined as relaxed atomic accesses for the reasons that `opaque` gives. Where
//! there is no inline assembly, a foreign copy is in their place.
//!
//! One block of inline assembly accesses four vectors: the compiler cannot fold the offset of a
//! vector into the instruction, and would compute each address by an instruction of its own. The
//! vectors are of `f64`, because comparisons of floating-point numbers are not compiled to MAX and
//! MIN in vectors of integers; the instructions for integers are the same in either.
#![allow(unsafe_code)]

use super::element::{Element, load_opaque, store_opaque};

/// A value that is loaded and stored as a whole: an element, a vector, or four vectors.
pub trait Lanes: Copy {
    /// Loads the value; no alignment is needed.
    ///
    /// # Safety
    /// `source` is valid for reads of a `Self`, its bytes are initialized, and the processor has
    /// the vectors.
    unsafe fn load(source: *const u8) -> Self;
    /// Stores the value; no alignment is needed.
    ///
    /// # Safety
    /// `dest` is valid for writes of a `Self`, and the processor has the vectors.
    unsafe fn store(self, dest: *mut u8);
}

/// One element.
#[derive(Clone, Copy)]
pub struct OneLane<T>(T);

impl<T: Element> Lanes for OneLane<T> {
    #[inline(always)]
    unsafe fn load(source: *const u8) -> Self {
        // SAFETY: `source` is valid for reads of an element by contract.
        Self(unsafe { load_opaque(source.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, dest: *mut u8) {
        // SAFETY: `dest` is valid for writes of an element by contract.
        unsafe { store_opaque(dest.cast(), self.0) }
    }
}

/// Implements [`Lanes`] for a vector and for four of them. Instructions are given as assembly text,
/// in which `{at}` is the address; `$register` is the class of the registers for `asm!`. Each
/// function has the attributes.
#[cfg(opaque)]
macro_rules! vectors {
    (
        $(#[$attribute:meta])*
        $vector:ty, $register:ident,
        load $load:literal, store $store:literal,
        load four $($load_four:literal)*, store four $($store_four:literal)*
    ) => {
        impl Lanes for $vector {
            $(#[$attribute])*
            unsafe fn load(source: *const u8) -> Self {
                let lanes;
                // SAFETY: `source` is valid for reads of a `Self`, and the processor has the
                // vectors, by contract. The instructions need no alignment.
                unsafe {
                    std::arch::asm!(
                        $load,
                        out($register) lanes,
                        at = in(reg) source,
                        options(nostack, preserves_flags, readonly)
                    );
                }
                lanes
            }

            $(#[$attribute])*
            unsafe fn store(self, dest: *mut u8) {
                // SAFETY: `dest` is valid for writes of a `Self`, and the processor has the
                // vectors, by contract. The instructions need no alignment.
                unsafe {
                    std::arch::asm!(
                        $store,
                        in($register) self,
                        at = in(reg) dest,
                        options(nostack, preserves_flags)
                    );
                }
            }
        }

        impl Lanes for [$vector; 4] {
            $(#[$attribute])*
            unsafe fn load(source: *const u8) -> Self {
                let (a, b, c, d);
                // SAFETY: `source` is valid for reads of a `Self`, and the processor has the
                // vectors, by contract. The instructions need no alignment.
                unsafe {
                    std::arch::asm!(
                        $($load_four,)*
                        out($register) a, out($register) b, out($register) c, out($register) d,
                        at = in(reg) source,
                        options(nostack, preserves_flags, readonly)
                    );
                }
                [a, b, c, d]
            }

            $(#[$attribute])*
            unsafe fn store(self, dest: *mut u8) {
                let [a, b, c, d] = self;
                // SAFETY: `dest` is valid for writes of a `Self`, and the processor has the
                // vectors, by contract. The instructions need no alignment.
                unsafe {
                    std::arch::asm!(
                        $($store_four,)*
                        in($register) a, in($register) b, in($register) c, in($register) d,
                        at = in(reg) dest,
                        options(nostack, preserves_flags)
                    );
                }
            }
        }
    };
}

/// The vector that every processor of this architecture has.
#[cfg(all(opaque, target_arch = "x86_64"))]
pub use std::arch::x86_64::__m128d as Baseline;

#[cfg(all(opaque, target_arch = "x86_64"))]
vectors! {
    #[inline(always)]
    Baseline, xmm_reg,
    load "movdqu {}, [{at}]",
    store "movdqu [{at}], {}",
    load four
        "movdqu {}, [{at}]" "movdqu {}, [{at} + 16]"
        "movdqu {}, [{at} + 32]" "movdqu {}, [{at} + 48]",
    store four
        "movdqu [{at}], {}" "movdqu [{at} + 16], {}"
        "movdqu [{at} + 32], {}" "movdqu [{at} + 48], {}"
}

// The vector of processors with AVX2.
#[cfg(all(opaque, target_arch = "x86_64"))]
vectors! {
    #[inline]
    #[target_feature(enable = "avx2")]
    std::arch::x86_64::__m256d, ymm_reg,
    load "vmovdqu {}, [{at}]",
    store "vmovdqu [{at}], {}",
    load four
        "vmovdqu {}, [{at}]" "vmovdqu {}, [{at} + 32]"
        "vmovdqu {}, [{at} + 64]" "vmovdqu {}, [{at} + 96]",
    store four
        "vmovdqu [{at}], {}" "vmovdqu [{at} + 32], {}"
        "vmovdqu [{at} + 64], {}" "vmovdqu [{at} + 96], {}"
}

/// The vector of every processor of this architecture on which Linux runs.
#[cfg(all(opaque, target_arch = "aarch64"))]
pub use std::arch::aarch64::float64x2_t as Baseline;

#[cfg(all(opaque, target_arch = "aarch64"))]
vectors! {
    #[inline(always)]
    Baseline, vreg,
    load "ldr {:q}, [{at}]",
    store "str {:q}, [{at}]",
    load four "ldp {:q}, {:q}, [{at}]" "ldp {:q}, {:q}, [{at}, #32]",
    store four "stp {:q}, {:q}, [{at}]" "stp {:q}, {:q}, [{at}, #32]"
}

#[cfg(not(opaque))]
pub use foreign::Baseline;

#[cfg(not(opaque))]
mod foreign {
    use super::Lanes;
    use crate::mem::opaque::foreign_copy;
    use std::mem::MaybeUninit;

    /// An array so large that its copy takes longer than the call.
    pub type Baseline = [u64; 32];

    macro_rules! by_foreign_copy {
        ($($lanes:ty)*) => {$(
            impl Lanes for $lanes {
                unsafe fn load(source: *const u8) -> Self {
                    let mut lanes = MaybeUninit::<Self>::uninit();
                    // SAFETY: `source` is valid for reads of a `Self` by contract, and `lanes` is
                    // as large.
                    unsafe { foreign_copy(lanes.as_mut_ptr().cast(), source, size_of::<Self>()) };
                    // SAFETY: all bytes of `lanes` are copied, and initialized by contract.
                    unsafe { lanes.assume_init() }
                }

                unsafe fn store(self, dest: *mut u8) {
                    let lanes = (&raw const self).cast();
                    // SAFETY: `dest` is valid for writes of a `Self` by contract, and `lanes` is as
                    // large.
                    unsafe { foreign_copy(dest, lanes, size_of::<Self>()) };
                }
            }
        )*};
    }

    by_foreign_copy! { Baseline [Baseline; 4] }
    #[cfg(target_arch = "x86_64")]
    by_foreign_copy! { std::arch::x86_64::__m256d [std::arch::x86_64::__m256d; 4] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Miri reports an atomic access to memory that can only be read, such as these constants.
    #[test]
    fn one_lane_is_loaded_from_memory_that_is_only_read() {
        fn assert_loaded<T: Element + PartialEq>(elements: &[T]) {
            for element in elements {
                // SAFETY: the element is valid for reads and initialized; no vector is needed.
                let lane = unsafe { OneLane::<T>::load((&raw const *element).cast()) };
                assert!(lane.0 == *element);
            }
        }
        static WORDS: [u64; 3] = [1, 2, 3];
        static HALVES: [u32; 3] = [4, 5, 6];
        static QUARTERS: [u16; 3] = [7, 8, 9];
        static BYTES: [u8; 3] = [10, 11, 12];
        static PAIRS: [u128; 2] = [13, 14];
        assert_loaded(&WORDS);
        assert_loaded(&HALVES);
        assert_loaded(&QUARTERS);
        assert_loaded(&BYTES);
        assert_loaded(&PAIRS);
    }

    #[test]
    fn one_lane_needs_no_alignment() {
        let bytes: [u8; 12] = std::array::from_fn(|i| i as u8);
        let mut copy = [0; 12];

        for offset in 0..=8 {
            let source = bytes.as_ptr().wrapping_add(offset);
            // SAFETY: `source` points to four initialized bytes of `bytes`; no vector is needed.
            let lane = unsafe { OneLane::<u32>::load(source) };

            let dest = copy.as_mut_ptr().wrapping_add(offset);
            // SAFETY: `dest` points to four bytes of `copy`; no vector is needed.
            unsafe { lane.store(dest) };
        }
        assert_eq!(copy, bytes);
    }
}
