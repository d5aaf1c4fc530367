//! The outcome of a step. It knows nothing of any step.

/// The outcome of a step that did not fail.
pub enum StepOutcome {
    Passed,
    /// Left out, and why.
    Skipped(String),
}
