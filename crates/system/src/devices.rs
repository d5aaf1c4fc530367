//! The RDMA devices of this machine, as sysfs shows them, and the name of a NIC.
//!
//! Opening a network library has side effects. So with `SHMEM_TRANSPORT=auto` a job opens one only
//! on a machine that has such a device.

use std::fmt;
use std::fs::{read_dir, read_to_string};
use std::path::Path;

/// The kernel's classes of RDMA devices. InfiniBand, RoCE, iWARP, EFA and Omni-Path are in the
/// first, Slingshot is in the second.
const CLASSES: [&str; 2] = ["infiniband", "cxi"];

/// Returns the names of the hardware devices that have an active port, or whose class shows no
/// ports, sorted. Software devices, such as Soft-RoCE, are attached to no bus, and are not
/// returned.
pub fn active() -> Vec<String> {
    active_in(Path::new("/sys/class"))
}

/// Returns the active ports of the InfiniBand class, such as `mlx5_0:1`, sorted, also of software
/// devices.
pub fn active_ports() -> Vec<String> {
    active_ports_in(Path::new("/sys/class"))
}

/// Returns true if there is any device, active or not, of hardware or software.
pub fn any() -> bool {
    any_in(Path::new("/sys/class"))
}

fn any_in(classes: &Path) -> bool {
    CLASSES.into_iter().any(|class| {
        let devices = read_dir(classes.join(class));
        devices.is_ok_and(|devices| devices.count() > 0)
    })
}

fn active_in(classes: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for class in CLASSES {
        let Ok(devices) = read_dir(classes.join(class)) else {
            continue;
        };

        for device in devices.flatten() {
            if device.path().join("device").exists() && has_active_port(&device.path()) {
                names.push(device.file_name().to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    names
}

/// Returns true if a port of the device is active, or if its class shows no ports.
fn has_active_port(device: &Path) -> bool {
    !device.join("ports").exists() || !active_ports_of(device).is_empty()
}

fn active_ports_of(device: &Path) -> Vec<String> {
    let Ok(ports) = read_dir(device.join("ports")) else {
        return Vec::new();
    };

    let mut active = Vec::new();
    for port in ports.flatten() {
        let state = read_to_string(port.path().join("state"));
        if state.is_ok_and(|state| state.contains("ACTIVE")) {
            active.push(port.file_name().to_string_lossy().into_owned());
        }
    }
    active
}

fn active_ports_in(classes: &Path) -> Vec<String> {
    let Ok(devices) = read_dir(classes.join(CLASSES[0])) else {
        return Vec::new();
    };

    let mut names = Vec::new();
    for device in devices.flatten() {
        let name = device.file_name().to_string_lossy().into_owned();
        for port in active_ports_of(&device.path()) {
            names.push(format!("{name}:{port}"));
        }
    }
    names.sort();
    names
}

/// A network interface controller (NIC), by the names that libraries use for it.
///
/// Formats as the values of `SHMEM_NIC`, such as `mlx5_0:1,ib0`: the name, then a colon and the
/// port if it has ports, then a comma and the interface if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicName {
    /// The name of the device, and of its domain in libfabric: `mlx5_0`, `cxi0`.
    pub name: String,
    /// The port to use, if the device has ports. UCX calls a device with its port `mlx5_0:1`.
    pub port: Option<u32>,
    /// The interface that sockets use: `ib0`, `hsn0`.
    pub interface: Option<String>,
}

impl NicName {
    /// Parses a NIC as `SHMEM_NIC` names it; returns `None` for a text of another form.
    pub fn parse(text: &str) -> Option<NicName> {
        let (device, interface) = match text.trim().split_once(',') {
            Some((device, interface)) => (device, Some(interface.to_owned())),
            None => (text.trim(), None),
        };
        let (name, port) = match device.split_once(':') {
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (device, None),
        };

        let is_name = |name: &str| !name.is_empty() && !name.contains([',', ':', ' ']);
        if !is_name(name) || !interface.as_deref().is_none_or(is_name) {
            return None;
        }
        Some(NicName {
            name: name.to_owned(),
            port,
            interface,
        })
    }
}

impl fmt::Display for NicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        match &self.interface {
            Some(interface) => write!(f, ",{interface}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, remove_dir_all, write};

    #[test]
    fn hardware_with_an_active_port_counts() {
        let classes = std::env::temp_dir().join(format!("rushmem-device-{}", std::process::id()));
        let port = |device: &str, state: &str| {
            let port = classes.join("infiniband").join(device).join("ports/1");
            create_dir_all(&port).expect("a directory");
            write(port.join("state"), state).expect("a file");
        };
        let on_a_bus = |device: &str| {
            create_dir_all(classes.join(device).join("device")).expect("a directory")
        };

        port("mlx5_0", "4: ACTIVE\n");
        on_a_bus("infiniband/mlx5_0");
        port("mlx5_1", "1: DOWN\n");
        on_a_bus("infiniband/mlx5_1");
        // A device of software, which is on no bus.
        port("rxe0", "4: ACTIVE\n");
        on_a_bus("cxi/cxi0");

        let found = active_in(&classes);
        let ports = active_ports_in(&classes);
        let nothing = active_in(&classes.join("elsewhere"));
        let any = ["", "elsewhere"].map(|dir| any_in(&classes.join(dir)));
        remove_dir_all(&classes).expect("made above");

        assert_eq!(found, ["cxi0", "mlx5_0"]);
        assert_eq!(ports, ["mlx5_0:1", "rxe0:1"]);
        assert!(nothing.is_empty());
        assert_eq!(any, [true, false]);
    }

    #[test]
    fn the_form_of_the_variable() {
        for text in ["mlx5_0:1,ib0", "cxi2,hsn2", "hfi1_0:1", "eth0"] {
            assert_eq!(
                NicName::parse(text).map(|nic| nic.to_string()).as_deref(),
                Some(text)
            );
        }
        for text in ["", ":1", "mlx5_0:", "mlx5_0:one", "mlx5_0,", "a,b,c", "a b"] {
            assert_eq!(NicName::parse(text), None, "{text}");
        }
    }
}
