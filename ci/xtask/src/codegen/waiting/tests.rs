//! Unit tests of `waiting`.

use super::*;

fn constant(name: &str, value: &str, meaning: &str) -> WaitConstant {
    WaitConstant { name: name.to_owned(), value: value.to_owned(), meaning: meaning.to_owned() }
}

#[test]
fn durations_and_numbers_of_polls_are_found() {
    let text = "\
        /// Longest sleep,\n    /// as [`x`] says.\n\
        pub(crate) const SLEEP: Duration = Duration::from_millis(10);\n\
        /// Not one of waiting.\nconst SIZE: usize = 7;\n\
        /// Polls.\nconst POLLS: u32 = 3_000;\n";
    let expected = [
        constant("SLEEP", "10 ms", "Longest sleep, as `x` says."),
        constant("POLLS", "3_000", "Polls."),
    ];
    assert_eq!(constants(text), expected);
}

#[test]
fn fields_are_listed() {
    let text = "/// Why.\nconst B: WaitLimits =\n    WaitLimits { spins: 2, sleep: \
        Duration::from_secs(1), ..A };\n";
    assert_eq!(constants(text), [constant("B", "spins 2, sleep 1 s, otherwise as A", "Why.")]);
}
