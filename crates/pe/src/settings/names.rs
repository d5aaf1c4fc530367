//! Finds names that no setting has, among the variables of this process and in files of settings,
//! and suggests the setting that may be meant.
//!
//! An unknown variable is reported only if its name is similar to that of a setting, since programs
//! and other OpenSHMEM libraries have variables of the same form. In a file, every unknown name is
//! a mistake.

use rushmem_bootstrap::{config, env};
use rushmem_system::setting::Setting;
use rushmem_system::setting::environment;

/// The present and the deprecated prefix of the names of settings, and one that users try.
const PREFIXES: [&str; 3] = ["SHMEM_", "SMA_", "RUSHMEM_"];

/// Variables that are not meant as settings: one of Sandia OpenSHMEM, and one by which modules of a
/// site name the version that they load.
const FOREIGN: [&str; 2] = ["SHMEM_FCOLLECT_ALGORITHM", "RUSHMEM_VERSION"];

/// Returns a warning for each variable of this process whose name is similar to that of one of
/// these settings without being one, and for each name in a file that no setting has.
pub fn warnings<'a>(settings: impl Iterator<Item = &'a Setting>) -> Vec<String> {
    let known: Vec<&str> = settings
        .flat_map(|row| [row.name].into_iter().chain(row.old_names.iter().copied()))
        .chain([env::LOCAL_ID])
        .collect();

    // The environment also has the values from files, which have warnings of their own.
    let in_files = config::in_environment(environment);
    let set = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| in_files.iter().all(|one| one.name != *name));
    let mut warnings = misspelled(&known, set);

    for one in &in_files {
        if known.contains(&one.name.as_str()) {
            continue;
        }

        let meant = match similar_setting(&one.name, &known) {
            Some(meant) => format!("; did you mean {meant}?"),
            None => String::new(),
        };
        warnings.push(format!(
            "{}: there is no setting {}{meant}",
            one.place, one.name
        ));
    }

    warnings
}

/// Returns a warning for each variable whose name is similar to a known one.
fn misspelled(known: &[&str], set: impl Iterator<Item = String>) -> Vec<String> {
    let mut unknown: Vec<String> = set
        .filter(|name| !known.contains(&name.as_str()) && !FOREIGN.contains(&name.as_str()))
        .collect();
    unknown.sort_unstable();

    let mut warnings = Vec::new();
    for name in unknown {
        if let Some(meant) = similar_setting(&name, known) {
            warnings.push(format!(
                "{name} is set, but there is no such setting; did you mean {meant}?"
            ));
        }
    }
    warnings
}

/// Returns the setting whose name is similar to this one, if there is one: by its letters, or
/// because it lacks one word of this name. Compares the names without their prefixes; `None` for a
/// name that has no prefix of settings.
fn similar_setting<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = without_prefix(name)?;
    if let Some(similar) = most_similar(name, known.iter().copied(), without_prefix) {
        return Some(similar);
    }

    known.iter().copied().find(|setting| {
        let setting = without_prefix(setting);
        setting.is_some_and(|setting| lacks_word(setting, name))
    })
}

/// Returns true if `setting`, of several words, is `name` without one of its words.
fn lacks_word(setting: &str, name: &str) -> bool {
    let setting: Vec<&str> = setting.split('_').collect();
    let mut name: Vec<&str> = name.split('_').collect();
    if setting.len() < 2 || name.len() != setting.len() + 1 {
        return false;
    }

    let first_difference = setting
        .iter()
        .zip(&name)
        .position(|(one, other)| one != other);
    name.remove(first_difference.unwrap_or(setting.len()));
    name == setting
}

/// Returns the candidate that is most similar to `name`, if it may be a misspelling of it. `part`
/// returns the part of a candidate that is compared.
pub fn most_similar<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
    part: impl Fn(&'a str) -> Option<&'a str>,
) -> Option<&'a str> {
    // The most letters in which a misspelling differs: a short name is soon similar to another one.
    let most = if name.len() < 8 { 1 } else { 2 };
    known
        .filter_map(|known| Some((strsim::osa_distance(name, part(known)?), known)))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, closest)| closest)
}

/// Returns a name without the prefix of settings; `None` if it has none.
fn without_prefix(name: &str) -> Option<&str> {
    PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = [
        "SHMEM_TRANSPORT",
        "SHMEM_NIC",
        "SHMEM_SYMMETRIC_SIZE",
        "SMA_SYMMETRIC_SIZE",
        "SHMEM_COLLECT_ALGORITHM",
        "SHMEM_AMOS",
    ];

    fn warnings(names: &[&str]) -> Vec<String> {
        misspelled(&KNOWN, names.iter().map(|name| (*name).to_owned()))
    }

    #[test]
    fn a_misspelled_name_is_shown_with_the_likely_one() {
        for (name, likely) in [
            ("SHMEM_TRANSPROT", "SHMEM_TRANSPORT"),
            ("SHMEM_SYMETRIC_SIZE", "SHMEM_SYMMETRIC_SIZE"),
            ("SHMEM_NICS", "SHMEM_NIC"),
            ("SHMEM_AMO", "SHMEM_AMOS"),
            ("SMA_TRANSPORT", "SHMEM_TRANSPORT"),
            ("RUSHMEM_TRANSPORT", "SHMEM_TRANSPORT"),
            ("SHMEM_SYMMETRIC_HEAP_SIZE", "SHMEM_SYMMETRIC_SIZE"),
            ("SHMEM_SYMMETRIC_SIZE_MB", "SHMEM_SYMMETRIC_SIZE"),
            ("SHMEM_USE_COLLECT_ALGORITHM", "SHMEM_COLLECT_ALGORITHM"),
        ] {
            let said =
                format!("{name} is set, but there is no such setting; did you mean {likely}?");
            assert_eq!(warnings(&[name]), [said]);
        }
    }

    #[test]
    fn what_is_ours_or_of_others_is_not_mentioned() {
        assert_eq!(warnings(&KNOWN), [""; 0]);

        let others = include_str!("../../../shmem-c/spec/env.csv").lines();
        let others: Vec<&str> = others.filter_map(|line| line.split(',').next()).collect();
        let known: Vec<&str> = crate::settings::ALL
            .iter()
            .map(|row| row.name)
            .chain(KNOWN)
            .collect();
        // The manual of Open MPI has this name, which its code does not read.
        let documented = "SHMEM_SYMMETRIC_HEAP_SIZE";
        let unlike =
            |name: &&str| !known.contains(name) && !name.starts_with("SMA_") && *name != documented;
        let others = others.into_iter().filter(unlike).map(str::to_owned);
        assert_eq!(misspelled(&known, others), [""; 0]);

        let unlike = ["SHMEM_MINE", "SHMEM_USE_HUGEPAGES", "TRANSPORT", "SHMEM_"];
        assert_eq!(warnings(&unlike), [""; 0]);
        let ours = [env::SOCKET, env::MEMORY, env::EXPLAINED, config::READ];
        assert_eq!(warnings(&ours), [""; 0]);
        assert_eq!(warnings(&["RUSHMEM_VERSION", "RUSHMEM_DIR"]), [""; 0]);
    }
}
