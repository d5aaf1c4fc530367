//! The network interface controller (NIC) that a PE should prefer, by the names that libraries use
//! for it.

use std::fmt;

/// A network interface controller.
///
/// Its text is the form of `SHMEM_NIC`, such as `mlx5_0:1,ib0`: the name, then a colon and the port
/// if it has ports, then a comma and the interface if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicName {
    /// The name of the device, and of its domain in libfabric: `mlx5_0`, `cxi0`.
    pub name: String,
    /// The port that is up. UCX calls a device with its port `mlx5_0:1`.
    pub port: Option<u32>,
    /// The interface that sockets use: `ib0`, `hsn0`.
    pub interface: Option<String>,
}

impl NicName {
    /// Reads the form of `SHMEM_NIC`; `None` for anything else.
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
        (is_name(name) && interface.as_deref().is_none_or(is_name)).then(|| NicName {
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

    #[test]
    fn the_form_of_the_variable() {
        for text in ["mlx5_0:1,ib0", "cxi2,hsn2", "hfi1_0:1", "eth0"] {
            assert_eq!(NicName::parse(text).map(|nic| nic.to_string()).as_deref(), Some(text));
        }
        for text in ["", ":1", "mlx5_0:", "mlx5_0:one", "mlx5_0,", "a,b,c", "a b"] {
            assert_eq!(NicName::parse(text), None, "{text}");
        }
    }
}
