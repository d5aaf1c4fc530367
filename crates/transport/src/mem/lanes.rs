//! Several elements at once, for the operators of reductions: a loop over atomic words is not vectorized.
//!
//! The loads and stores are vector instructions that are written down here. To the compiler they are opaque, and defined as relaxed
//! atomic accesses for the reasons at the head of `opaque`. Where none are written down, a foreign copy
//! is in their place.
//!
//! Four vectors are accessed by one block of instructions, because the compiler cannot put the offset of a vector into an
//! instruction that is written down, and would compute each address by an instruction of its own. The vectors are of `f64`,
//! because comparisons of floating-point numbers are not compiled to MAX and MIN instructions in vectors of integers;
//! the instructions for integers are the same either way.
#![allow(unsafe_code)]

use super::element::{Element, load_unseen, store_unseen};

/// As many bytes as one access moves, without a type.
pub trait Lanes: Copy {
    /// Loads them; no alignment is needed.
    ///
    /// # Safety
    /// `source` is valid for reads of so many bytes, which are initialized, and the processor has the vectors.
    unsafe fn load(source: *const u8) -> Self;
    /// Stores them; no alignment is needed.
    ///
    /// # Safety
    /// `dest` is valid for writes of so many bytes, and the processor has the vectors.
    unsafe fn store(self, dest: *mut u8);
}

/// One element; a `T` is at its address, whoever wrote it.
#[derive(Clone, Copy)]
pub struct Single<T>(T);

impl<T: Element> Lanes for Single<T> {
    #[inline(always)]
    unsafe fn load(source: *const u8) -> Self {
        // SAFETY: valid for reads by contract, and symmetric memory, which is valid for writes, too.
        Self(unsafe { load_unseen(source.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, dest: *mut u8) {
        // SAFETY: valid for writes by contract.
        unsafe { store_unseen(dest.cast(), self.0) }
    }
}

/// Implements [`Lanes`] for a vector and for four, by the instructions that load and store the four.
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
                // SAFETY: valid for reads, and the processor has the vectors, by contract.
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
                // SAFETY: valid for writes, and the processor has the vectors, by contract.
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
                // SAFETY: valid for reads, and the processor has the vectors, by contract.
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
                // SAFETY: valid for writes, and the processor has the vectors, by contract.
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

/// The lanes that every processor of this architecture has.
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

// Of processors with AVX2.
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

/// The lanes that every processor of this architecture has, with Linux.
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

    /// So many bytes that a call takes little time beside them.
    pub type Baseline = [u64; 32];

    macro_rules! by_foreign_copy {
        ($($lanes:ty)*) => {$(
            impl Lanes for $lanes {
                unsafe fn load(source: *const u8) -> Self {
                    let mut lanes = MaybeUninit::<Self>::uninit();
                    // SAFETY: valid for reads by contract, and as many bytes of this function's.
                    unsafe { foreign_copy(lanes.as_mut_ptr().cast(), source, size_of::<Self>()) };
                    // SAFETY: all bytes are copied, and initialized by contract.
                    unsafe { lanes.assume_init() }
                }

                unsafe fn store(self, dest: *mut u8) {
                    let lanes = (&raw const self).cast();
                    // SAFETY: as many bytes of this function's, and valid for writes by contract.
                    unsafe { foreign_copy(dest, lanes, size_of::<Self>()) };
                }
            }
        )*};
    }

    by_foreign_copy! { Baseline [Baseline; 4] }
    #[cfg(target_arch = "x86_64")]
    by_foreign_copy! { std::arch::x86_64::__m256d [std::arch::x86_64::__m256d; 4] }
}
