//! What happens when an application breaks a rule: the process ends with a message that names the rule.

use std::fmt::Display;

/// A rule of a profile's was broken.
pub(crate) fn broken(profile: &str, rule: &str, what: impl Display) -> ! {
    eprintln!("strict fabric ({profile}): {rule}: {what}");
    std::process::abort()
}
