//! `shmem-perf compare`: says which figures of two runs differ beyond noise.
//!
//! A figure differs if its batches do by a two-sided Mann-Whitney test at 5 %, corrected for the number of comparisons by the method of
//! Benjamini and Hochberg, and if its median differs by more than a threshold. This file must never know how a figure is drawn.

mod judge;
mod mann_whitney;
mod words;

use std::path::PathBuf;

use clap::Parser;

use crate::{flags, load};

const DEFAULT_THRESHOLD: f64 = 5.0;

/// Say what differs beyond noise between two runs.
///
/// A figure counts as different if a two-sided Mann-Whitney test on the medians of its batches says so at 5 %, corrected for the number of
/// comparisons by the method of Benjamini and Hochberg, and if its median differs by more than the threshold. The batches of one run
/// do not know how runs differ from each other: two runs of the same tell how large a threshold must be. Floors are compared as well,
/// but only to tell whether the machine was the same.
///
/// Exit status: 0 if nothing is slower, 1 if something is, 2 if the records cannot be compared.
#[derive(Parser)]
#[command(name = "shmem-perf compare", verbatim_doc_comment)]
struct CompareFlags {
    /// The record to compare with
    #[arg(value_name = "BEFORE.json")]
    before: PathBuf,
    /// The record to judge
    #[arg(value_name = "AFTER.json")]
    after: PathBuf,
    /// Percent by which a median must differ to count
    #[arg(long, value_name = "PERCENT", default_value_t = DEFAULT_THRESHOLD, value_parser = percent)]
    threshold: f64,
    /// Also list what is equal
    #[arg(long)]
    all: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("it must be a number that is not negative".into()),
    }
}

/// Carries the subcommand out, and returns its exit status. `args` is what stands behind `compare`.
///
/// # Errors
/// One sentence; the exit status is then 2.
pub fn run(args: &[String]) -> Result<u8, String> {
    let Some(flags) = flags::parse::<CompareFlags>("shmem-perf compare", args)? else {
        return Ok(0);
    };
    let (before, after) = (load::load(&flags.before)?, load::load(&flags.after)?);
    let found = judge::judge(&before, &after, flags.threshold / 100.0);
    if found.compared.is_empty() {
        return Err(format!(
            "{} and {} have no series in common that can be compared: an operation, its shape and a size must be in both.",
            flags.before.display(),
            flags.after.display()
        ));
    }
    print!("{}", words::words((&before, &after), &found, flags.threshold, flags.all));
    Ok(u8::from(found.is_slower()))
}
