//! What the user has set: applies the files of settings, and prints the lines of PE 0 when the job
//! starts. These are the version and the settings if requested, and warnings about probable
//! mistakes in variables and files of settings, in how the job was launched, and in the use of MPI.

use crate::build::Build;
use rushmem_bootstrap::unlaunched::forgotten_job_hint;
use rushmem_pe::call::warning::warning;
use rushmem_pe::constants::{SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING};
use rushmem_pe::memory::statics;
use rushmem_pe::settings::{self, Settings, names};
use rushmem_system::devices::NicName;
use rushmem_system::interfaces::{INTERFACES, Selection};
use rushmem_system::setting::Setting;
use rushmem_system::setting::{ValueSource, environment, is_blank};
use rushmem_transport::Provider;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The size below which a heap is hardly meant: no request for memory but a small one would fit.
const SMALL_HEAP: u64 = 64 << 10;

/// Applies the files of settings, including that of the directory where the library is installed.
/// Returns a sentence for each file or line that is ignored.
pub(super) fn apply_files() -> Vec<String> {
    settings::apply_files(|| {
        // The file that contains this function is the library, `PREFIX/lib/NAME`, or the program.
        let library = statics::object_holding((apply_files as *const ()).cast())?.name;
        let library = Path::new(OsStr::from_bytes(&library));
        let prefix = library.parent()?.parent()?;

        // The path of a program that contains the library is relative if it was started by a
        // relative path. Such a program may be in any directory, whose parent has no settings of
        // the library.
        if prefix.is_absolute() {
            Some(prefix.to_owned())
        } else {
            None
        }
    })
}

/// Prints a warning for each setting without effect, for variables of a job that this process has
/// not joined, and for an MPI that cannot start any more. Prints the version and the settings if
/// they are requested.
pub(super) fn print_warnings_and_info(
    chosen: &Settings,
    providers: &[Provider],
    is_launched: bool,
) {
    let of_providers = providers.iter().flat_map(|provider| provider.settings);
    for warning in warnings_of_variables(of_providers.clone()) {
        warning!("{warning}");
    }
    if let Some(warning) = small_heap(chosen.symmetric_size) {
        warning!("{warning}");
    }

    if !is_launched && let Some(hint) = forgotten_job_hint(&environment) {
        warning!("{hint}");
    }
    if rushmem_bootstrap::is_open_mpi_shut_out() {
        warning!(
            "this program has Open MPI 5, whose MPI_Init fails after shmem_init; call MPI_Init first"
        );
    }

    if chosen.version {
        println!(
            "{SHMEM_VENDOR_STRING} (OpenSHMEM {SHMEM_MAJOR_VERSION}.{SHMEM_MINOR_VERSION}), build {}",
            Build::of(providers)
        );
    }
    if chosen.info {
        for row in settings::ALL.iter().chain(of_providers) {
            println!(
                "{}: {}; now {}",
                row.names(),
                row.description(),
                settings::state(row)
            );
        }
    }
}

/// Returns a warning for each mistake among the settings that the user has made by variables and
/// files.
fn warnings_of_variables<'a>(of_providers: impl Iterator<Item = &'a Setting>) -> Vec<String> {
    let providers: Vec<&Setting> = of_providers.collect();
    let rows = || settings::ALL.iter().chain(providers.iter().copied());
    let mut warnings = names::warnings(rows());

    for row in &providers {
        if let Some(UserValue { name, value }) = value_of_user(row)
            && is_blank(&value)
        {
            warnings.push(format!("{name} is empty, which is as if it were not set"));
        }
    }

    for UserValue { name, value } in rows().filter_map(value_of_user) {
        if name == INTERFACES {
            warnings.extend(absent_interfaces(name, &value));
        } else if name == rushmem_topology::NIC_VARIABLE && value != "any" {
            warnings.extend(absent_nic(name, &value));
        }
    }
    warnings
}

/// Returns a warning if a heap of `nbytes` bytes is so small that a suffix may be missing.
fn small_heap(nbytes: u64) -> Option<String> {
    if !(1..SMALL_HEAP).contains(&nbytes) {
        return None;
    }
    Some(format!(
        "SHMEM_SYMMETRIC_SIZE gives the heap {nbytes} bytes; if that is to be MiB or GiB, write {nbytes}m or {nbytes}g"
    ))
}

/// Returns a warning for each network interface in the value of a variable that this machine does
/// not have. The transport that uses the list reports an invalid one.
fn absent_interfaces(variable: &str, value: &str) -> Vec<String> {
    let Ok(Some(selection)) = Selection::parse(value) else {
        return Vec::new();
    };
    let interfaces = devices_of_class("net");
    selection
        .requested_names()
        .filter_map(|named| absent(variable, named, &interfaces))
        .collect()
}

/// Returns a warning for the device, and one for the network interface, if the value of a variable
/// names a NIC that this machine does not have.
fn absent_nic(variable: &str, value: &str) -> Vec<String> {
    let Some(nic) = NicName::parse(value) else {
        return Vec::new();
    };
    let interfaces = devices_of_class("net");
    let mut devices = devices_of_class("infiniband");
    devices.extend(devices_of_class("cxi"));
    devices.extend(interfaces.iter().cloned());

    let mut warnings = Vec::from_iter(absent(variable, &nic.name, &devices));
    if let Some(interface) = &nic.interface {
        warnings.extend(absent(variable, interface, &interfaces));
    }
    warnings
}

/// A value that the user has set, and the variable that has it.
struct UserValue {
    name: &'static str,
    value: String,
}

/// Returns the value of a setting, if a variable or a file of the user has set it.
fn value_of_user(row: &Setting) -> Option<UserValue> {
    let (value, source) = settings::current(row)?;
    match source {
        ValueSource::Environment(name) | ValueSource::File(name, _) => {
            Some(UserValue { name, value })
        }
        _ => None,
    }
}

/// Returns a warning if the value `named` of a variable is not in the list `there`, unless that is
/// empty, because the kernel does not show the devices.
fn absent(variable: &str, named: &str, there: &[String]) -> Option<String> {
    if there.is_empty() || there.iter().any(|name| name == named) {
        return None;
    }

    let similar = names::most_similar(named, there.iter().map(String::as_str), Some);
    let meant = match similar {
        Some(meant) => format!("; did you mean {meant}?"),
        None => String::new(),
    };
    let there = there.join(", ");
    Some(format!(
        "{variable} names {named}, which the host of PE 0 does not have: it has {there}{meant}"
    ))
}

fn devices_of_class(class: &str) -> Vec<String> {
    let directory = Path::new("/sys/class").join(class);
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_of_few_bytes_may_lack_a_suffix() {
        assert_eq!(small_heap(0), None);
        assert_eq!(small_heap(SMALL_HEAP), None);
        let warning = small_heap(4).expect("4 bytes");
        assert!(warning.ends_with("write 4m or 4g"), "{warning}");
    }

    #[test]
    fn what_a_machine_does_not_have_is_shown_with_what_it_has() {
        let there = ["eth0", "eth1", "lo"].map(str::to_owned);
        assert_eq!(absent("X", "lo", &there), None);
        assert_eq!(absent("X", "lo", &[]), None);

        let expected = "X names ib0, which the host of PE 0 does not have: it has eth0, eth1, lo";
        assert_eq!(absent("X", "ib0", &there).as_deref(), Some(expected));

        let likely = absent("X", "eth", &there).expect("it is not there");
        assert!(likely.ends_with("; did you mean eth0?"), "{likely}");
    }
}
