//! Unit tests of `combine`.
#![allow(unsafe_code)]

use super::*;

/// Returns the result in a third array, after checking that both in-place forms give the same
/// bytes.
fn run<T: Copy + PartialEq + core::fmt::Debug>(op: Combine, left: &[T], right: &[T]) -> Vec<T> {
    assert_eq!(op.elem_bytes, size_of::<T>());
    assert_eq!(left.len(), right.len());
    let n = left.len();

    // As mutable pointers, since operands are symmetric memory, which is never borrowed.
    let mut left_copy = left.to_vec();
    let mut right_copy = right.to_vec();
    let left_ptr = left_copy.as_mut_ptr().cast_const().cast();
    let right_ptr = right_copy.as_mut_ptr().cast_const().cast();

    let mut apart = left.to_vec();
    let dest = apart.as_mut_ptr().cast();
    // SAFETY: the pointers lead to `n` elements each, and `dest` to a vector of its own.
    unsafe { (op.f)(dest, left_ptr, right_ptr, n) };

    let mut on_left = left.to_vec();
    let dest = on_left.as_mut_ptr().cast();
    // SAFETY: the pointers lead to `n` elements each, and `dest` is the left operand.
    unsafe { (op.f)(dest, dest, right_ptr, n) };

    let mut on_right = right.to_vec();
    let dest = on_right.as_mut_ptr().cast();
    // SAFETY: the pointers lead to `n` elements each, and `dest` is the right operand.
    unsafe { (op.f)(dest, left_ptr, dest, n) };

    assert_eq!(bytes(&apart), bytes(&on_left));
    assert_eq!(bytes(&apart), bytes(&on_right));
    apart
}

fn bytes<T>(elements: &[T]) -> Vec<u8> {
    // SAFETY: the elements are numbers without padding.
    unsafe { core::slice::from_raw_parts(elements.as_ptr().cast::<u8>(), size_of_val(elements)) }
        .to_vec()
}

#[test]
fn bits() {
    let left = [0b1100_u8];
    let right = [0b1010_u8];
    assert_eq!(run(Combine::and::<u8>(), &left, &right), [0b1000]);
    assert_eq!(run(Combine::or::<u8>(), &left, &right), [0b1110]);
    assert_eq!(run(Combine::xor::<u8>(), &left, &right), [0b0110]);

    let sign = run(Combine::and::<i64>(), &[-1], &[i64::MIN]);
    assert_eq!(sign, [i64::MIN]);
}

#[test]
fn the_type_decides_the_order() {
    assert_eq!(run::<i8>(Combine::max::<i8>(), &[-1], &[1]), [1]);
    assert_eq!(run::<i8>(Combine::min::<i8>(), &[-1], &[1]), [-1]);
    assert_eq!(run::<u8>(Combine::max::<u8>(), &[0xff], &[1]), [0xff]);
    assert_eq!(run::<u64>(Combine::min::<u64>(), &[u64::MAX], &[1]), [1]);
}

#[test]
fn integers_wrap() {
    let sum = run(Combine::sum::<i32>(), &[i32::MAX], &[1]);
    assert_eq!(sum, [i32::MIN]);

    let product = run(Combine::prod::<i16>(), &[i16::MIN], &[-1]);
    assert_eq!(product, [i16::MIN]);

    let sum = run(Combine::sum::<usize>(), &[usize::MAX], &[2]);
    assert_eq!(sum, [1]);
}

#[test]
fn every_element_of_an_odd_number_is_combined() {
    let left: Vec<i32> = (0..37).collect();
    let right: Vec<i32> = (0..37).map(|i| 100 * i).collect();
    let expected: Vec<i32> = (0..37).map(|i| 101 * i).collect();
    assert_eq!(run::<i32>(Combine::sum::<i32>(), &left, &right), expected);
    assert!(run::<i32>(Combine::sum::<i32>(), &[], &[]).is_empty());
}

/// An array is combined like its elements, whether one vector or several fit it. Miri would take
/// minutes for all lengths: it tries few, or more if `cargo xtask test --full` sets
/// RUSHMEM_EVERY_SIZE.
#[test]
fn arrays_of_every_length_are_combined_like_their_elements() {
    // Among the floating-point numbers of these bytes are zeros and a NaN of either sign.
    let few = |i: usize| [0x00, 0x80, 0xff, 0x7f, 0x3f][i / 8 * 5 % 11 % 5];
    let any = |i: usize| ((i * i) >> 3) as u8;
    check::<i8>(Combine::min::<i8>(), any);
    check::<u16>(Combine::sum::<u16>(), any);
    check::<i32>(Combine::prod::<i32>(), any);
    check::<u64>(Combine::max::<u64>(), any);
    check::<i64>(Combine::xor::<i64>(), any);
    check::<f32>(Combine::max::<f32>(), few);
    check::<f64>(Combine::max::<f64>(), few);
    check::<f64>(Combine::min::<f64>(), few);
    check::<f64>(Combine::max::<f64>(), any);
    check::<f64>(Combine::sum::<f64>(), any);
    check::<[f32; 2]>(Combine::max::<Complex<f32>>(), few);
    check::<[f64; 2]>(Combine::min::<Complex<f64>>(), few);
    check::<[f64; 2]>(Combine::max::<Complex<f64>>(), any);
    check::<[f64; 2]>(Combine::sum::<Complex<f64>>(), any);
}

/// The length of the longest array.
const LONGEST: usize = 75;

fn lengths() -> Vec<usize> {
    match std::env::var_os("RUSHMEM_EVERY_SIZE") {
        _ if !cfg!(miri) => (0..=LONGEST).collect(),
        Some(_) => (0..=9).chain([LONGEST]).collect(),
        None => vec![0, 1, 2, 9],
    }
}

/// Checks an operator on elements that are made of the bytes that `byte` returns.
fn check<T>(op: Combine, byte: impl Fn(usize) -> u8) {
    let nbytes = |nelems: usize| nelems * size_of::<T>();
    let lengths = lengths();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    // The elements begin one byte behind the start of a vector, so that they are not aligned.
    let mut left: Vec<u8> = (0..=nbytes(longest)).map(&byte).collect();
    let mut right: Vec<u8> = (0..=nbytes(longest)).map(|i| byte(i * 7 + 3)).collect();
    // As mutable pointers, since operands are symmetric memory, which is never borrowed.
    let left = left.as_mut_ptr().wrapping_add(1);
    let right = right.as_mut_ptr().wrapping_add(1);

    let apply = |dest: &mut [u8], first: usize, nelems: usize| {
        let dest = dest.as_mut_ptr().cast();
        let left = left.wrapping_add(nbytes(first)).cast_const().cast();
        let right = right.wrapping_add(nbytes(first)).cast_const().cast();
        // SAFETY: the pointers lead to at least `nelems` elements each, and `dest` to an array of
        // its own.
        unsafe { (op.f)(dest, left, right, nelems) }
    };
    for nelems in lengths {
        let mut together = vec![0xa5; nbytes(longest) + 9];
        apply(&mut together[1..], 0, nelems);

        let mut one_by_one = vec![0xa5; together.len()];
        for i in 0..nelems {
            apply(&mut one_by_one[1 + nbytes(i)..], i, 1);
        }
        assert_eq!(together, one_by_one, "{nelems} elements");
    }
}

#[test]
fn no_alignment_is_needed() {
    let mut dest = [0u8; 9];
    let mut left = [0u8; 9];
    let mut right = [0u8; 9];
    left[1..].copy_from_slice(&5u64.to_ne_bytes());
    right[1..].copy_from_slice(&7u64.to_ne_bytes());

    let op = Combine::prod::<u64>();
    let dest_ptr = dest[1..].as_mut_ptr().cast();
    // A word that happens to be aligned is loaded as an atomic one, which needs a mutable pointer.
    let left_ptr = left[1..].as_mut_ptr().cast_const().cast();
    let right_ptr = right[1..].as_mut_ptr().cast_const().cast();
    // SAFETY: the pointers lead to the last 8 bytes of each array, one element.
    unsafe { (op.f)(dest_ptr, left_ptr, right_ptr, 1) };
    assert_eq!(dest[1..], 35u64.to_ne_bytes());
}

/// Compared by bits: NaN is unequal to itself, and -0.0 equal to 0.0.
#[test]
#[cfg_attr(miri, ignore = "it is safe code")]
fn max_and_min_of_floats_depend_on_no_order() {
    let odd = [
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        1.0,
        -1.0,
    ];
    for operator in [<f64 as Ordered>::max, <f64 as Ordered>::min] {
        for a in odd {
            for b in odd {
                let a_and_b = operator(a, b);
                assert_eq!(a_and_b.to_bits(), operator(b, a).to_bits());

                for c in odd {
                    let left_first = operator(a_and_b, c);
                    let right_first = operator(a, operator(b, c));
                    assert_eq!(left_first.to_bits(), right_first.to_bits());
                }
            }
        }
    }
}

#[test]
fn max_and_min_of_floats() {
    let max = |a: f64, b: f64| run::<u64>(Combine::max::<f64>(), &[a.to_bits()], &[b.to_bits()]);
    let min = |a: f64, b: f64| run::<u64>(Combine::min::<f64>(), &[a.to_bits()], &[b.to_bits()]);
    assert_eq!(max(0.0, -0.0), [0.0f64.to_bits()]);
    assert_eq!(min(0.0, -0.0), [(-0.0f64).to_bits()]);
    assert_eq!(max(f64::NAN, 1.0), [f64::NAN.to_bits()]);
    assert_eq!(min(1.0, -f64::NAN), [f64::NAN.to_bits()]);
    assert_eq!(max(f64::INFINITY, 1.0), [f64::INFINITY.to_bits()]);

    let left = [2.0_f32, -3.0];
    let right = [1.0_f32, -2.0];
    assert_eq!(run(Combine::max::<f32>(), &left, &right), [2.0, -2.0]);
    assert_eq!(run(Combine::min::<f32>(), &left, &right), [1.0, -3.0]);
}

#[test]
fn complex_numbers_are_ordered_by_real_then_imaginary_part() {
    type C = Complex<f64>;
    let c = |re: f64, im: f64| Complex { re, im };
    let larger = [c(2.0, 0.0), c(1.0, 3.0), c(0.0, -9.0), c(1.0, 0.0)];
    let lesser = [c(1.0, 9.0), c(1.0, -3.0), c(-0.0, 9.0), c(1.0, -0.0)];
    assert_eq!(run::<C>(Combine::max::<C>(), &larger, &lesser), larger);
    assert_eq!(run::<C>(Combine::max::<C>(), &lesser, &larger), larger);
    assert_eq!(run::<C>(Combine::min::<C>(), &larger, &lesser), lesser);

    let nan = <C as Ordered>::max(c(5.0, f64::NAN), c(9.0, 9.0));
    assert!(nan.re.is_nan() && nan.im.is_nan());
}

#[test]
fn complex_numbers() {
    type C32 = Complex<f32>;
    type C64 = Complex<f64>;

    let left = [C64 { re: 1.0, im: 2.0 }];
    let right = [C64 { re: 3.0, im: -4.0 }];
    let sum = run(Combine::sum::<C64>(), &left, &right);
    assert_eq!(sum, [C64 { re: 4.0, im: -2.0 }]);
    let product = run(Combine::prod::<C64>(), &left, &right);
    assert_eq!(product, [C64 { re: 11.0, im: 2.0 }]);

    let left = [C32 { re: 0.5, im: 1.0 }];
    let right = [C32 { re: 2.0, im: 4.0 }];
    let product = run(Combine::prod::<C32>(), &left, &right);
    assert_eq!(product, [C32 { re: -3.0, im: 4.0 }]);
    assert_eq!(Combine::sum::<C32>().elem_bytes, 8);
}
