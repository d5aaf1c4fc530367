//! Checks the explanations of jobs that are constructed from snapshots.

mod hangs;
mod healthy;
mod invalid;
mod jobs;
mod large;
