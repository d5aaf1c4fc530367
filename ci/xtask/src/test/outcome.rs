//! How steps end. It knows nothing of any step.

/// How a step ended, if not with an error.
pub enum StepOutcome {
    Passed,
    /// Left out, and why.
    Skipped(String),
}
