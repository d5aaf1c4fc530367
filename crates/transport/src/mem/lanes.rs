//! Several elements at once, for the operators of reductions: a loop over atomic words is not vectorized.
//!
//! The loads and stores are vector instructions that are written down here. To the compiler they are opaque, and defined as relaxed
//! atomic accesses for the reasons at the head of `copy`. Where none are written down, a foreign copy is in their place.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m256i;

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

/// The lanes that every processor of this architecture has.
pub use baseline::Baseline;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod baseline {
    use super::Lanes;
    use std::arch::asm;
    pub use std::arch::x86_64::__m128i as Baseline;

    impl Lanes for Baseline {
        #[inline(always)]
        unsafe fn load(source: *const u8) -> Self {
            let lanes;
            // SAFETY: valid for reads by contract; every x86-64 has SSE2.
            unsafe {
                asm!("movdqu {}, [{}]", out(xmm_reg) lanes, in(reg) source, options(nostack, preserves_flags, readonly));
            }
            lanes
        }

        #[inline(always)]
        unsafe fn store(self, dest: *mut u8) {
            // SAFETY: valid for writes by contract; every x86-64 has SSE2.
            unsafe {
                asm!("movdqu [{}], {}", in(reg) dest, in(xmm_reg) self, options(nostack, preserves_flags));
            }
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod baseline {
    use super::Lanes;
    pub use std::arch::aarch64::uint8x16_t as Baseline;
    use std::arch::asm;

    impl Lanes for Baseline {
        #[inline(always)]
        unsafe fn load(source: *const u8) -> Self {
            let lanes;
            // SAFETY: valid for reads by contract; every aarch64 of Linux has NEON.
            unsafe {
                asm!("ldr {:q}, [{}]", out(vreg) lanes, in(reg) source, options(nostack, preserves_flags, readonly));
            }
            lanes
        }

        #[inline(always)]
        unsafe fn store(self, dest: *mut u8) {
            // SAFETY: valid for writes by contract; every aarch64 of Linux has NEON.
            unsafe {
                asm!("str {:q}, [{}]", in(vreg) self, in(reg) dest, options(nostack, preserves_flags));
            }
        }
    }
}

#[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), miri))]
mod baseline {
    use super::Lanes;
    use crate::mem::copy::foreign_copy;

    /// So many that a call is little beside them.
    pub type Baseline = [u64; 32];

    impl Lanes for Baseline {
        unsafe fn load(source: *const u8) -> Self {
            let mut lanes = [0; 32];
            // SAFETY: valid for reads by contract, and as many bytes of this function's.
            unsafe { foreign_copy(lanes.as_mut_ptr().cast(), source, size_of::<Self>()) };
            lanes
        }

        unsafe fn store(self, dest: *mut u8) {
            // SAFETY: as many bytes of this function's, and valid for writes by contract.
            unsafe { foreign_copy(dest, self.as_ptr().cast(), size_of::<Self>()) };
        }
    }
}

/// Of processors with AVX2.
#[cfg(target_arch = "x86_64")]
impl Lanes for __m256i {
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn load(source: *const u8) -> Self {
        let lanes;
        // SAFETY: valid for reads, and there is AVX2, by contract.
        unsafe {
            std::arch::asm!("vmovdqu {}, [{}]", out(ymm_reg) lanes, in(reg) source, options(nostack, preserves_flags, readonly));
        }
        lanes
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store(self, dest: *mut u8) {
        // SAFETY: valid for writes, and there is AVX2, by contract.
        unsafe {
            std::arch::asm!("vmovdqu [{}], {}", in(reg) dest, in(ymm_reg) self, options(nostack, preserves_flags));
        }
    }
}
