//! Floating-point numbers of 16 bits: those of IEEE 754 (binary16) and bfloat16, the upper half of
//! an `f32`. Rust has no such types in its stable language. Sums and products are computed as `f32`
//! and rounded to the nearest number, ties to even.
#![allow(unsafe_code)]

use super::{Arithmetic, Element, Sealed};
use bytemuck::{Pod, Zeroable};

/// A number of IEEE 754 with 16 bits, as these bits.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable, Pod)]
pub struct Float16(pub u16);

/// The upper 16 bits of an `f32`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable, Pod)]
pub struct BFloat16(pub u16);

/// The difference of the exponents of an `f32` and a [`Float16`], in the place of the exponent of
/// an `f32`.
const EXPONENTS: u32 = (127 - 15) << 23;
/// The bits of a fraction that an `f32` has more than a [`Float16`].
const FEWER: u32 = 23 - 10;
/// The least positive normal [`Float16`], as bits of an `f32`.
const LEAST_NORMAL: u32 = (127 - 14) << 23;
/// 2^16 as bits of an `f32`, which is beyond all numbers of [`Float16`].
const BEYOND: u32 = (127 + 16) << 23;
/// The infinite `f32`.
const INFINITE: u32 = 0xff << 23;

impl Float16 {
    /// Returns the number, which `f32` has, too.
    #[inline]
    pub fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let bits = u32::from(self.0 & 0x7fff) << FEWER;
        let magnitude = match self.0 & 0x7c00 {
            // Multiples of the least number, 2^-24.
            0 => (f32::from(self.0 & 0x3ff) * f32::from_bits((127 - 24) << 23)).to_bits(),
            0x7c00 => bits | INFINITE,
            _ => bits + EXPONENTS,
        };
        f32::from_bits(sign | magnitude)
    }

    /// Returns `number` rounded to the nearest [`Float16`], ties to even. A NaN stays a NaN.
    #[inline]
    pub fn of_f32(number: f32) -> Float16 {
        let sign = (number.to_bits() >> 16) as u16 & 0x8000;
        let magnitude = number.abs().to_bits();
        let bits = match magnitude {
            // 0.5 has the least number as the unit of its last bit, so this addition rounds.
            0..LEAST_NORMAL => (number.abs() + 0.5).to_bits() - 0.5f32.to_bits(),
            LEAST_NORMAL..BEYOND => rounded(magnitude - EXPONENTS, FEWER),
            BEYOND..=INFINITE => 0x7c00,
            _ => 0x7e00 | magnitude >> FEWER & 0x3ff,
        };
        Float16(sign | bits as u16)
    }
}

impl BFloat16 {
    /// Returns the number, which `f32` has, too.
    #[inline]
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    /// Returns `number` rounded to the nearest [`BFloat16`], ties to even. A NaN stays a NaN.
    #[inline]
    pub fn of_f32(number: f32) -> BFloat16 {
        let bits = number.to_bits();
        if number.is_nan() {
            return BFloat16((bits >> 16) as u16 | 0x40);
        }
        BFloat16(rounded(bits, 16) as u16)
    }
}

/// Returns the bits of a number without the last `fewer`, rounded to the nearest, ties to even.
#[inline]
fn rounded(bits: u32, fewer: u32) -> u32 {
    let is_odd = bits >> fewer & 1;
    (bits + (1 << (fewer - 1)) - 1 + is_odd) >> fewer
}

macro_rules! arithmetic {
    ($($float:ident $one:literal)*) => {$(
        impl Sealed for $float {}
        // SAFETY: 16 bits, of which every pattern is a value.
        unsafe impl Element for $float {}
        impl Arithmetic for $float {
            const ZERO: Self = Self(0);
            const ONE: Self = Self($one);
            #[inline]
            fn add(self, other: Self) -> Self {
                Self::of_f32(self.to_f32() + other.to_f32())
            }
            #[inline]
            fn mul(self, other: Self) -> Self {
                Self::of_f32(self.to_f32() * other.to_f32())
            }
        }
    )*};
}
arithmetic!(Float16 0x3c00 BFloat16 0x3f80);

#[cfg(test)]
mod tests {
    use super::*;

    /// A format, as its tests see it.
    struct Format {
        to_f32: fn(u16) -> f32,
        of_f32: fn(f32) -> u16,
        infinite: u16,
        /// The bits of its fractions.
        fraction: u32,
        /// The difference of an exponent from its field.
        bias: i32,
    }

    const FORMATS: [Format; 2] = [
        Format {
            to_f32: |bits| Float16(bits).to_f32(),
            of_f32: |number| Float16::of_f32(number).0,
            infinite: 0x7c00,
            fraction: 10,
            bias: 15,
        },
        Format {
            to_f32: |bits| BFloat16(bits).to_f32(),
            of_f32: |number| BFloat16::of_f32(number).0,
            infinite: 0x7f80,
            fraction: 7,
            bias: 127,
        },
    ];

    /// Returns a finite number of a format, by its definition.
    fn defined(format: &Format, bits: u16) -> f64 {
        let field = i32::from((bits & 0x7fff) >> format.fraction);
        let fraction = f64::from(bits & ((1 << format.fraction) - 1));
        let unit = 2f64.powi(field.max(1) - format.bias - format.fraction as i32);
        let hidden = if field == 0 {
            0.0
        } else {
            2f64.powi(format.fraction as i32)
        };
        let magnitude = (hidden + fraction) * unit;
        if bits & 0x8000 == 0 {
            magnitude
        } else {
            -magnitude
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "it is safe code")]
    fn every_number_is_what_its_bits_define_and_comes_back() {
        for format in &FORMATS {
            for bits in 0..=u16::MAX {
                let number = (format.to_f32)(bits);
                let back = (format.of_f32)(number);
                if bits & 0x7fff > format.infinite {
                    assert!(number.is_nan(), "{bits:#x}");
                    assert!((format.to_f32)(back).is_nan(), "{bits:#x}");
                    continue;
                }
                assert_eq!(back, bits);
                if bits & 0x7fff == format.infinite {
                    assert!(number.is_infinite(), "{bits:#x}");
                } else {
                    assert_eq!(f64::from(number).to_bits(), defined(format, bits).to_bits());
                }
            }
        }
    }

    /// Between two neighbors lie numbers of `f32`: the middle becomes the even one, and the numbers
    /// beside the middle the nearer one. Behind the largest number comes the infinite one.
    #[test]
    #[cfg_attr(miri, ignore = "it is safe code")]
    fn what_lies_between_two_numbers_becomes_the_nearer_or_the_even_one() {
        for format in &FORMATS {
            for low in 0..format.infinite {
                let step = defined(format, low + 1) - defined(format, low);
                let step = if low + 1 == format.infinite {
                    defined(format, low) - defined(format, low - 1)
                } else {
                    step
                };
                let middle = (defined(format, low) + step / 2.0) as f32;
                let even = low + low % 2;
                for (number, due) in [
                    (middle.next_down(), low),
                    (middle, even),
                    (middle.next_up(), low + 1),
                ] {
                    assert_eq!((format.of_f32)(number), due, "{number:e}");
                    assert_eq!((format.of_f32)(-number), due | 0x8000, "{:e}", -number);
                }
            }
        }
    }

    #[test]
    fn what_is_too_large_becomes_infinite() {
        for format in &FORMATS {
            assert_eq!((format.of_f32)(f32::MAX), format.infinite);
            assert_eq!((format.of_f32)(f32::NEG_INFINITY), format.infinite | 0x8000);
        }
        assert_eq!(Float16::of_f32(1e6), Float16(0x7c00));
        assert_eq!(Float16::of_f32(f32::MIN_POSITIVE), Float16(0));
    }

    #[test]
    fn a_sum_is_rounded_once() {
        // 2048 + 1 is not among the numbers of 16 bits, and 2048 + 3 lies between two.
        let sum = |a, b| Float16::of_f32(a).add(Float16::of_f32(b)).to_f32();
        assert_eq!(sum(2048.0, 1.0), 2048.0);
        assert_eq!(sum(2048.0, 3.0), 2052.0);
        assert!(sum(f32::INFINITY, f32::NEG_INFINITY).is_nan());
    }
}
