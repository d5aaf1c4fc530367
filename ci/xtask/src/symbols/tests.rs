//! Unit tests of `symbols`.

use super::*;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned())).collect()
}

#[test]
fn nm_is_understood() {
    let listing = "librushmem.o:\n0000000000000010 T pshmem_init\n0000000000000020 W shmem_init\n";
    assert_eq!(symbols(listing), map(&[("pshmem_init", "T"), ("shmem_init", "W")]));
}

#[test]
fn an_executable_stack_is_seen() {
    let plain = "  [ 7] .note.GNU-stack PROGBITS 0000000000000000 0851c0 000000 00      0   0  1";
    let with = "  [ 7] .note.GNU-stack PROGBITS 0000000000000000 0851c0 000000 00   X  0   0  1";
    assert!(!executable_stack(plain));
    assert!(executable_stack(with));
    assert!(executable_stack(""));
}

#[test]
fn every_difference_is_a_fault() {
    let expected = map(&[("a", "T"), ("b", "T"), ("c", "W")]);
    let found = map(&[("a", "T"), ("c", "T"), ("d", "T")]);
    let error = compare(Path::new("x.so"), &expected, &found).unwrap_err().to_string();
    assert_eq!(error, "x.so: 3 faults:\n  b is missing\n  c is T, not W\n  d is in no table");
    assert!(compare(Path::new("x.so"), &expected, &expected).is_ok());
}
