//! The addresses (GIDs) of RoCE ports. libfabric's provider verbs uses the first one of a port,
//! also if it is link-local, from which no route leads to other networks; UCX chooses a better one.

use std::fs;
use std::net::Ipv6Addr;
use std::path::Path;

use super::finding::{Finding, Grade};

/// Returns a finding for each port below `class` (/sys/class/infiniband) whose first address is
/// link-local.
pub fn findings(class: &Path) -> Vec<Finding> {
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    let mut findings = Vec::new();
    for device in entries(class) {
        for port in entries(&device.path().join("ports")) {
            let read = |file: &str| fs::read_to_string(port.path().join(file)).unwrap_or_default();
            let is_roce = read("link_layer").trim() == "Ethernet";
            if is_roce && read("state").contains("ACTIVE") {
                let [device, port_name] = [device.file_name(), port.file_name()]
                    .map(|name| name.to_string_lossy().into_owned());
                let name = format!("GIDs of {device}:{port_name}");
                findings.extend(finding(name, &gids(&port.path().join("gids"))));
            }
        }
    }
    findings
}

/// Returns the addresses that are set, by their indices.
fn gids(dir: &Path) -> Vec<(u32, Ipv6Addr)> {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut gids: Vec<(u32, Ipv6Addr)> = files
        .filter_map(|file| {
            let index = file.file_name().to_str()?.parse().ok()?;
            let gid: Ipv6Addr = fs::read_to_string(file.path()).ok()?.trim().parse().ok()?;
            (!gid.is_unspecified()).then_some((index, gid))
        })
        .collect();
    gids.sort_unstable();
    gids
}

fn finding(name: String, gids: &[(u32, Ipv6Addr)]) -> Option<Finding> {
    let (index, first) = gids.first().filter(|(_, gid)| gid.is_unicast_link_local())?;
    let text = format!("the first one, {first} at index {index}, is link-local and has no route");
    let routable = gids.iter().find(|(_, gid)| !gid.is_unicast_link_local());
    let remedy = match routable {
        Some((index, gid)) => {
            format!("FI_VERBS_GID_IDX={index} makes libfabric use {gid}, which is routable")
        }
        None => "give the interface of the port an address that other hosts reach".to_owned(),
    };
    Some(Finding::new(name, Grade::Warning, text).remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_routable_address_is_proposed_instead_of_a_link_local_one() {
        let class = std::env::temp_dir().join(format!("shmem-info-gids-{}", std::process::id()));
        let port = class.join("irdma0/ports/1");
        fs::create_dir_all(port.join("gids")).expect("a directory");
        let write = |file: &str, text: &str| fs::write(port.join(file), text).expect("a file");
        write("link_layer", "Ethernet\n");
        write("state", "4: ACTIVE\n");
        write("gids/0", "fe80:0000:0000:0000:0a00:27ff:fe00:0001\n");
        write("gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0002\n");
        write("gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");
        let with_route = findings(&class);
        fs::remove_file(port.join("gids/1")).expect("own file");
        let without = findings(&class);
        write("link_layer", "InfiniBand\n");
        let infiniband = findings(&class);
        fs::remove_dir_all(&class).expect("own directory");
        let said = with_route[0].to_string();
        assert!(said.starts_with("GIDs of irdma0:1: the first one, fe80::"), "{said}");
        assert!(said.contains("FI_VERBS_GID_IDX=1 makes libfabric use ::ffff:10.0.0.2"), "{said}");
        assert!(without[0].to_string().contains("give the interface of the port an address"));
        assert!(infiniband.is_empty());
    }
}
