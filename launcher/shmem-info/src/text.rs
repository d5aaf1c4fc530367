//! The map as lines of text.

use crate::map::{Card, Group, Map, named};

/// The whole map.
pub fn draw(map: &Map) -> String {
    let mut lines = map.head.clone();
    for socket in &map.sockets {
        lines.push(socket.title.clone());
        for node in &socket.nodes {
            lines.push(format!("  {}", node.title));
            for group in &node.groups {
                lines.extend(groups(group));
            }
            lines.extend(node.cards.iter().map(|line| format!("    {}", card(line))));
        }
        lines.extend(socket.cards.iter().map(|line| format!("  {}", card(line))));
    }
    lines.extend(map.cards.iter().map(card));
    lines.extend(map.notes.iter().map(|note| format!("note: {note}")));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn groups(group: &Group) -> Vec<String> {
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

fn card(card: &Card) -> String {
    let users = match (card.choice, card.pes.is_empty()) {
        (None, _) => "not used by PEs".to_owned(),
        (Some(_), true) => "no PE".to_owned(),
        (Some(_), false) => named(&card.pes),
    };
    format!("card {} ({}): {users}", card.name, card.about)
}
