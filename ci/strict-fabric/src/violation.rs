//! Ends a process that violates a rule, with a message that names the rule.

use std::fmt::Display;

/// Reports the violation of a rule of a profile.
pub(crate) fn violated(profile: &str, rule: &str, what: impl Display) -> ! {
    eprintln!("strict fabric ({profile}): {rule}: {what}");
    std::process::abort()
}
