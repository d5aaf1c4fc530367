//! What Rushmem says of a job beyond the standard: its settings with their origin, and what it found below it.
//!
//! `shmem-info` prints both; it lies beside this program or on the search path. Other libraries say nothing of this.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::record::Setting;

/// How long `shmem-info` may look for transports.
const LIMIT: Duration = Duration::from_secs(5);

/// What `shmem-info --json` prints.
#[derive(Debug, Deserialize)]
pub struct Told {
    name: String,
    /// Settings that have a value.
    pub settings: Vec<Setting>,
    transports: Vec<Transport>,
}

#[derive(Debug, Deserialize)]
struct Transport {
    name: String,
    found: Option<String>,
}

impl Told {
    /// What the transports found, with the versions of their libraries.
    pub fn below(&self) -> Vec<String> {
        let found = |one: &Transport| Some(format!("{}: {}", one.name, one.found.as_ref()?));
        self.transports.iter().filter_map(found).collect()
    }
}

/// Asks `shmem-info`; there is no answer if there is none of this library.
pub fn ask(library: &str) -> Option<Told> {
    let own = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join("shmem-info")));
    let beside = own.filter(|path| path.exists());
    let mut child = Command::new(beside.unwrap_or_else(|| PathBuf::from("shmem-info")))
        .arg("--json")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // A pipe has room for all that it prints.
    let start = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if start.elapsed() > LIMIT {
            _ = child.kill();
            _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    told(&text, library)
}

fn told(text: &str, library: &str) -> Option<Told> {
    serde_json::from_str(text).ok().filter(|told: &Told| told.name == library)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{ "name": "Rushmem 1.0", "standard": "1.6",
        "settings": [{ "name": "SHMEM_ONNODE", "value": "on", "origin": "default" }],
        "transports": [{ "name": "ucx", "found": "UCX 1.13.1" }, { "name": "ofi", "missing": "no library" }] }"#;

    #[test]
    fn only_the_same_library_is_believed() {
        let found = told(TEXT, "Rushmem 1.0").expect("it is the same");
        assert_eq!((found.settings.len(), found.below()), (1, vec!["ucx: UCX 1.13.1".to_owned()]));
        assert!(told(TEXT, "Rushmem 2.0").is_none() && told("no JSON", "Rushmem 1.0").is_none());
    }
}
