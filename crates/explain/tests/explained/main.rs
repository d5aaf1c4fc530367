//! Jobs that are constructed from reports, and what is said of them.

mod hangs;
mod healthy;
mod invalid;
mod jobs;
mod large;
