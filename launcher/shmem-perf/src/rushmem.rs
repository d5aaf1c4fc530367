//! The facts that Rushmem reports beyond the standard: its settings with their origin, and the
//! libraries that its transports use.
//!
//! `shmem-info` prints both; it is in the directory of this program or on the search path. Other
//! libraries report neither. `shmem-perf tune` also runs `shmem-info`, because no routine of
//! OpenSHMEM selects the algorithm of a collective.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::record::SettingInfo;

/// The maximum duration of `shmem-info`, which looks for transports.
const LIMIT: Duration = Duration::from_secs(5);

/// The output of `shmem-info --json`.
#[derive(Debug, Deserialize)]
pub struct Info {
    name: String,
    /// Settings that have a value.
    pub settings: Vec<SettingInfo>,
    transports: Vec<Transport>,
}

#[derive(Debug, Deserialize)]
struct Transport {
    name: String,
    found: Option<String>,
}

impl Info {
    /// Returns what each transport found, such as the version of its library.
    pub fn descriptions(&self) -> Vec<String> {
        let mut descriptions = Vec::new();
        for transport in &self.transports {
            if let Some(found) = &transport.found {
                descriptions.push(format!("{}: {found}", transport.name));
            }
        }
        descriptions
    }
}

/// Runs `shmem-info`. Returns `None` if it is missing, takes too long, or belongs to another
/// library than `library`.
pub fn query(library: &str) -> Option<Info> {
    let mut program = std::env::current_exe()
        .unwrap_or_default()
        .with_file_name("shmem-info");
    if !program.exists() {
        // On the search path.
        program = PathBuf::from("shmem-info");
    }

    let mut child = Command::new(program)
        .arg("--json")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;

    // The output is read after the exit, because it is shorter than the buffer of a pipe.
    let start = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if start.elapsed() > LIMIT {
            // It may have ended meanwhile; what it says is too late in any case.
            _ = child.kill();
            _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }

    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    parsed(&text, library)
}

fn parsed(text: &str, library: &str) -> Option<Info> {
    let info: Info = serde_json::from_str(text).ok()?;
    if info.name == library {
        Some(info)
    } else {
        None
    }
}

/// Replaces this process by `shmem-info tune`, from the directory of this program. Returns only if
/// that fails.
///
/// # Errors
/// A sentence if `shmem-info` cannot be executed.
pub fn tune(args: &[String]) -> Result<u8, String> {
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("shmem-perf"));
    let program = own.with_file_name("shmem-info");
    let error = Command::new(&program).arg("tune").args(args).exec();
    Err(format!(
        "it needs {}, which is a program of Rushmem: {error}",
        program.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{ "name": "Rushmem 1.0", "standard": "1.6",
        "settings": [{ "name": "SHMEM_ONNODE", "value": "on", "origin": "default" }],
        "transports": [{ "name": "ucx", "found": "UCX 1.13.1" }, { "name": "ofi", "missing": "no library" }] }"#;

    #[test]
    fn only_the_same_library_counts() {
        let found = parsed(TEXT, "Rushmem 1.0").expect("it is the same");
        assert_eq!(found.settings.len(), 1);
        assert_eq!(found.descriptions(), ["ucx: UCX 1.13.1"]);

        assert!(parsed(TEXT, "Rushmem 2.0").is_none());
        assert!(parsed("no JSON", "Rushmem 1.0").is_none());
    }
}
