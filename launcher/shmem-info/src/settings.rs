//! Prints the settings: their values, their descriptions, the page docs/settings.md, and a report
//! in JSON with the values and the transports, which `shmem-perf` stores with its measurements.

use clap::builder::styling::Style;
use rushmem_providers::ALL;
use rushmem_runtime::build::Build;
use rushmem_runtime::constants::{SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING};
use rushmem_runtime::settings;
use rushmem_runtime::setup::on_this_machine;
use rushmem_system::setting::{Setting, ValueSource};
use serde_json::json;

use crate::terminal::wrapped;

/// The groups of the page: the first setting of each, in the order of [`all`], and its heading.
const GROUPS: [(&str, &str); 7] = [
    ("SHMEM_VERSION", "What the library says of itself"),
    ("SHMEM_CHECK", "Finding mistakes"),
    ("SHMEM_SYMMETRIC_SIZE", "Memory and nodes"),
    ("SHMEM_AGGREGATE", "Transports"),
    ("SHMEM_BOOTSTRAP", "Jobs"),
    ("SHMEM_SYNC_ALGORITHM", "Collectives"),
    ("SHMEM_UCX_TLS", "Networks"),
];

/// The settings that help with a first program.
const OF_BEGINNERS: [&str; 6] = [
    "SHMEM_INFO",
    "SHMEM_CHECK",
    "SHMEM_SYMMETRIC_SIZE",
    "SHMEM_ONNODE",
    "SHMEM_TRANSPORT",
    "SHMEM_WATCHDOG",
];

/// Returns the settings of the library and of its transports.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    settings::ALL
        .iter()
        .chain(ALL.iter().flat_map(|provider| provider.settings))
}

/// Returns the version, the settings that are set, those that have their defaults, the names of
/// those without a value, and the place of this process in the job that SHMEM_JOB names, if any.
pub fn values() -> String {
    let bold = Style::new().bold();
    let width = all().map(|row| row.name.len()).max().unwrap_or_default();

    let mut set = String::new();
    let mut defaults = String::new();
    let mut unset = Vec::new();
    for row in all() {
        let name = row.name;
        match settings::current(row) {
            None => unset.push(name),
            Some((value, ValueSource::Default)) => {
                defaults += &format!("  {name:width$}  {value}\n");
            }
            Some(_) => {
                let state = settings::state(row);
                set += &format!("  {bold}{name:width$}{bold:#}  {state}");
                if let Some(default) = row.default {
                    set += &format!("; the default is {default}");
                }
                if let Some(mistake) = settings::mistake(row, rushmem_providers::ALL) {
                    set += &format!("; not valid: {mistake}");
                }
                set += "\n";
            }
        }
    }
    if set.is_empty() {
        set += "  nothing\n";
    }

    let mut place = String::new();
    let lines = settings::place_in_job();
    if !lines.is_empty() {
        place += "Place in a job that SHMEM_JOB names:\n";
        for line in lines {
            place += &format!("  {line}\n");
        }
        place += "\n";
    }

    let unset = wrapped(&format!("  {}", unset.join(", ")), 2);
    format!(
        "{SHMEM_VENDOR_STRING} (OpenSHMEM {SHMEM_MAJOR_VERSION}.{SHMEM_MINOR_VERSION}), build {}\n\n\
         Set:\n{set}\nDefaults:\n{defaults}\nNot set:\n{unset}\n\n{place}\
         shmem-info --describe [WORD] prints what they do.\n",
        Build::of(ALL)
    )
}

/// Returns the descriptions of the settings whose names contain `word`, in upper or lower case.
///
/// # Errors
/// If there is no such setting.
pub fn descriptions(word: &str) -> Result<String, String> {
    let bold = Style::new().bold();
    let wanted = word.to_uppercase();
    let mut text = String::new();
    for row in all() {
        let names = row.names();
        if names.contains(&wanted) {
            let description = wrapped(&format!("      {}", row.description()), 6);
            text += &format!("  {bold}{names}{bold:#}\n{description}\n");
        }
    }

    if text.is_empty() {
        return Err(format!(
            "no setting has {wanted} in its name; shmem-info lists all"
        ));
    }
    Ok(text)
}

/// Returns the page docs/settings.md.
pub fn page() -> String {
    let mut text = "# Settings\n\n\
        This page is for those who look up an environment variable of the library. `SHMEM_INFO=1` prints\n\
        the variables at start-up. `shmem-info` prints the value of each, and where it comes from;\n\
        `shmem-info --describe` prints what they do. A variable in parentheses is deprecated; where both\n\
        are set, the first one counts. A value that a variable may not have ends the job with a message,\n\
        and `shmem-info` marks it. PE 0 warns of variables whose names are nearly those of settings, of\n\
        interfaces and NICs that its host does not have, of empty lists, and of a heap of a few bytes.\n\n\
        `oshrun` has options instead of variables ([launching.md](launching.md)). It sets\n\
        `SHMEM_LOCAL_ID` to the number of the PE on its node and, on a machine with several NICs,\n\
        `SHMEM_NIC` unless it is set.\n\n\
        Those that help with a first program are **bold**. `shmem-info --markdown` writes this page.\n"
        .to_owned();

    for row in all() {
        if let Some((_, heading)) = GROUPS.iter().find(|(first, _)| *first == row.name) {
            text += &format!("\n## {heading}\n\n| variable | default | meaning |\n|---|---|---|\n");
        }

        let old_names: Vec<String> = row.old_names.iter().map(|old| format!("`{old}`")).collect();
        let old = if old_names.is_empty() {
            String::new()
        } else {
            format!(" (or {})", old_names.join(", "))
        };

        let default = match row.default {
            Some(default) => format!("`{default}`"),
            None => String::new(),
        };

        let bold = if OF_BEGINNERS.contains(&row.name) {
            "**"
        } else {
            ""
        };
        text += &format!(
            "| {bold}`{}`{bold}{old} | {default} | {} |\n",
            row.name, row.meaning
        );
    }

    text += "\nTo change the defaults of a site or a user, go on with [configuration.md](configuration.md).\n";
    text
}

/// Returns the version, the settings that have a value, and the transports as JSON. The list of
/// transports is empty if a setting is invalid.
pub fn as_json() -> String {
    let mut now = Vec::new();
    for row in all() {
        if let Some((value, origin)) = settings::current(row) {
            now.push(json!({ "name": row.name, "value": value, "origin": origin.to_string() }));
        }
    }

    let mut transports = Vec::new();
    if let Ok(settings) = settings::of_this_process(ALL) {
        for provider in ALL {
            let name = provider.name;
            transports.push(match on_this_machine(&settings, provider) {
                Ok(found) => json!({ "name": name, "found": found.found.to_string() }),
                Err(why) => json!({ "name": name, "missing": why.to_string() }),
            });
        }
    }

    let report = json!({
        "name": SHMEM_VENDOR_STRING,
        "build": Build::of(ALL).to_string(),
        "standard": format!("{SHMEM_MAJOR_VERSION}.{SHMEM_MINOR_VERSION}"),
        "settings": now,
        "transports": transports,
    });
    format!("{report:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_in_a_group() {
        let names: Vec<&str> = all().map(|row| row.name).collect();
        assert_eq!(names[0], GROUPS[0].0);
        for name in GROUPS.iter().map(|(first, _)| first).chain(&OF_BEGINNERS) {
            assert!(names.contains(name), "{name}");
        }
    }
}
