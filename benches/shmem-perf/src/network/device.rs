//! The NIC that a PE prefers, by the variable in which `oshrun` passes it on: a floor goes over the
//! same one as the library.

use std::env;

/// The preferred device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// A NIC with its port, such as `mlx5_0:1`.
    pub port: Option<String>,
    /// The names of the NIC and of its interface.
    names: Vec<String>,
    pub is_one_host: bool,
}

impl Preference {
    pub fn of_this_pe(is_one_host: bool) -> Self {
        Self::parse(&env::var("SHMEM_NIC").unwrap_or_default(), is_one_host)
    }

    fn parse(text: &str, is_one_host: bool) -> Self {
        let (nic, interface) = text.split_once(',').unwrap_or((text, ""));
        let name = nic.split(':').next().unwrap_or(nic);
        let port = nic.contains(':').then(|| nic.to_owned());
        let names = [name, interface].into_iter().filter(|name| !matches!(*name, "" | "any"));
        Self { port, names: names.map(str::to_owned).collect(), is_one_host }
    }

    /// Returns the place of a device among those of one provider; the lowest is taken.
    pub fn rank(&self, device: &str) -> (bool, bool) {
        let is_near = self.names.iter().any(|name| name == device);
        (self.is_one_host && device != "lo", !is_near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first<'a>(nic: &str, is_one_host: bool, devices: &[&'a str]) -> &'a str {
        let preference = Preference::parse(nic, is_one_host);
        devices.iter().min_by_key(|device| preference.rank(device)).expect("a device")
    }

    #[test]
    fn the_nic_and_its_interface_are_preferred() {
        assert_eq!(first("mlx5_1:1,ib1", false, &["mlx5_0", "mlx5_1"]), "mlx5_1");
        assert_eq!(first("cxi2,hsn2", false, &["hsn0", "hsn2"]), "hsn2");
        assert_eq!(first("any", false, &["eth0", "lo"]), "eth0");
        assert_eq!(first("", true, &["eth0", "lo"]), "lo");
        assert_eq!(Preference::parse("mlx5_1:1,ib1", false).port.as_deref(), Some("mlx5_1:1"));
        assert_eq!(Preference::parse("any", true).port, None);
    }
}
