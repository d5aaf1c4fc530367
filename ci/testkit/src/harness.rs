//! Runs tests as cargo's own harness does, with one difference: a test that needs a library, a
//! compiler or a launcher that is absent is reported as ignored, with the reason, and not as
//! passed.
//!
//! A file of such tests is compiled with `harness = false` and ends with [`tests!`](crate::tests).

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Trial};

/// The panic of a test that cannot run here.
struct Absent(String);

/// Ends the calling test, which is reported as ignored for the reason `why`. Under cargo's own
/// harness the test fails, so that a test that did nothing never passes.
pub fn absent(why: impl Display) -> ! {
    resume_unwind(Box::new(Absent(why.to_string())))
}

/// A test function with its name.
pub struct Test {
    name: String,
    body: Box<dyn FnOnce() + Send>,
    ignored: Option<&'static str>,
}

impl Test {
    /// Returns a test that passes if `body` returns, is ignored if it calls [`absent`], and fails
    /// if it panics otherwise.
    pub fn new(name: impl Into<String>, body: impl FnOnce() + Send + 'static) -> Self {
        Self {
            name: name.into(),
            body: Box::new(body),
            ignored: None,
        }
    }

    /// Makes the test run only on request, as the attribute `ignore` does.
    pub fn ignored(self, why: &'static str) -> Self {
        Self {
            ignored: Some(why),
            ..self
        }
    }

    /// Returns the test for `libtest_mimic`. `run_ignored` says that ignored tests were requested.
    /// If they were not, the library is not told that this test is ignored, since it would not
    /// print the reason; the test then only returns the reason.
    fn trial(self, run_ignored: bool) -> Trial {
        if let Some(why) = self.ignored
            && !run_ignored
        {
            return Trial::ignorable_test(self.name, move || Ok(Completion::ignored_with(why)));
        }

        let is_ignored = self.ignored.is_some();
        let body = self.body;
        let run = move || {
            // After a panic nothing uses what the body has changed.
            let completion = match catch_unwind(AssertUnwindSafe(body)) {
                Ok(()) => Completion::Completed,
                Err(panic) => completion_after(panic),
            };
            Ok(completion)
        };
        Trial::ignorable_test(self.name, run).with_ignored_flag(is_ignored)
    }
}

/// Returns what a test is that has ended by a panic: ignored if the panic is [`Absent`]. Continues
/// any other panic, which fails the test.
fn completion_after(panic: Box<dyn Any + Send>) -> Completion {
    match panic.downcast::<Absent>() {
        Ok(absent) => Completion::ignored_with(absent.0),
        Err(other) => resume_unwind(other),
    }
}

/// Runs the tests that the program's arguments select.
pub fn run(tests: Vec<Test>) -> ExitCode {
    let arguments = Arguments::from_args();
    let run_ignored = arguments.ignored || arguments.include_ignored;
    let tests = tests
        .into_iter()
        .map(|test| test.trial(run_ignored))
        .collect();
    libtest_mimic::run(&arguments, tests).exit_code()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_ignored() {
        let Err(panic) = catch_unwind(|| absent("no compiler"));
        let Completion::Ignored { reason } = completion_after(panic) else {
            panic!("not ignored");
        };
        assert_eq!(reason.as_deref(), Some("no compiler"));
    }

    #[test]
    #[should_panic(expected = "a failed check")]
    fn what_fails_is_not_ignored() {
        completion_after(Box::new("a failed check"));
    }
}
