//! Unit tests of `amo`.
#![allow(unsafe_code)]

use super::*;

fn arithmetic<T: ArithmeticAmo + PartialEq + std::fmt::Debug>(five: T, six: T, nine: T) {
    let mut word = five;
    let at = &raw mut word;
    // SAFETY: `at` points to a live local, aligned as its type.
    unsafe {
        assert_eq!(T::fetch_add(at, T::ONE), five);
        assert_eq!(T::fetch(at), six);
        assert_eq!(T::compare_swap(at, five, nine), six);
        assert_eq!(T::compare_swap(at, six, nine), six);
        assert_eq!(T::swap(at, five), nine);
        T::set(at, six);
        assert_eq!(T::fetch(at), six);
    }
}

fn bitwise<T: BitwiseAmo + PartialEq + std::fmt::Debug + From<u8>>() {
    let mut word = T::from(0b1100);
    let at = &raw mut word;
    // SAFETY: `at` points to a live local, aligned as its type.
    unsafe {
        assert_eq!(T::fetch_and(at, T::from(0b0110)), T::from(0b1100));
        assert_eq!(T::fetch_or(at, T::from(0b0001)), T::from(0b0100));
        assert_eq!(T::fetch_xor(at, T::from(0b1111)), T::from(0b0101));
        assert_eq!(T::fetch(at), T::from(0b1010));
    }
}

#[test]
fn every_operation_on_every_type() {
    arithmetic(5i32, 6, 9);
    arithmetic(5u32, 6, 9);
    arithmetic(5i64, 6, 9);
    arithmetic(5u64, 6, 9);
    bitwise::<u32>();
    bitwise::<u64>();
    let mut float = 1.5f32;
    // SAFETY: a live local.
    assert_eq!(unsafe { f32::swap(&raw mut float, -0.0) }, 1.5);
    assert!(float.is_sign_negative());
    let mut double = 0.5f64;
    // SAFETY: a live local.
    assert_eq!(unsafe { f64::fetch_add(&raw mut double, -2.0) }, 0.5);
    assert_eq!(double, -1.5);
}

#[test]
fn additions_wrap() {
    let mut word = i32::MAX;
    // SAFETY: a live local.
    unsafe { i32::fetch_add(&raw mut word, 1) };
    assert_eq!(word, i32::MIN);
}
