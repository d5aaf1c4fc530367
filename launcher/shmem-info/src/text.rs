//! The map as lines of text.

use crate::map::{CacheGroup, MachineMap, NicBox, named};

/// Returns the whole map.
pub fn draw(map: &MachineMap) -> String {
    let mut lines = map.head.clone();
    for socket in &map.sockets {
        lines.push(socket.title.clone());
        for node in &socket.nodes {
            lines.push(format!("  {}", node.title));
            for group in &node.groups {
                lines.extend(groups(group));
            }
            lines.extend(node.nics.iter().map(|line| format!("    {}", nic(line))));
        }
        lines.extend(socket.nics.iter().map(|line| format!("  {}", nic(line))));
    }
    lines.extend(map.nics.iter().map(nic));
    lines.extend(map.notes.iter().map(|note| format!("note: {note}")));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn groups(group: &CacheGroup) -> Vec<String> {
    let mut lines: Vec<String> = group.title.iter().map(|title| format!("    {title}")).collect();
    let used = group.cores.iter().filter(|core| !core.pes.is_empty());
    lines
        .extend(used.map(|core| format!("      core of CPUs {}: {}", core.cpus, named(&core.pes))));
    let idle = group.cores.iter().filter(|core| core.pes.is_empty()).count();
    match idle {
        0 => {}
        1 => lines.push("      1 core without a PE".to_owned()),
        _ => lines.push(format!("      {idle} cores without a PE")),
    }
    lines
}

fn nic(nic: &NicBox) -> String {
    let users = match (nic.choice, nic.pes.is_empty()) {
        (None, _) => "not used by PEs".to_owned(),
        (Some(_), true) => "no PE".to_owned(),
        (Some(_), false) => named(&nic.pes),
    };
    format!("NIC {} ({}): {users}", nic.name, nic.about)
}
