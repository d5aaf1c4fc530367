//! The map as an SVG drawing: nested boxes, and each core in the color of the NIC of its first PE.

use crate::map::{CacheGroup, CoreMap, MachineMap, NicBox, Node, SocketMap, pe_names, pe_ranges};

/// Colors of NICs, and of the cores whose PEs use them. Further NICs get the same colors again.
const COLORS: [&str; 10] = [
    "#9ecae1", "#fdae6b", "#a1d99b", "#f4a6b7", "#bcbddc", "#e7cb94", "#9edae5", "#d6b08c",
    "#c7e29c", "#f7b6d2",
];
/// The color of a core whose PEs use no NIC.
const PLAIN: &str = "#dddddd";
/// The color of a core without a PE, and of a NIC that no PE may use.
const IDLE: &str = "#ffffff";

/// The distance between boxes, and of a box from what it contains.
const GAP: usize = 8;
/// The height of a title.
const TITLE: usize = 20;
/// An upper bound of the width of a letter of a title.
const LETTER: usize = 7;

/// A part of the drawing, with its upper left corner at the origin.
struct Drawn {
    width: usize,
    height: usize,
    body: String,
}

/// Returns the map as the text of an SVG file.
pub fn draw(map: &MachineMap) -> String {
    let mut parts: Vec<Drawn> = map.head.iter().map(|line| words(line, "head")).collect();
    let sockets = grid(map.sockets.iter().map(socket).collect(), 2);
    let nics = nics(&map.nics, sockets.width);
    parts.push(sockets);
    parts.extend(nics);
    for note in &map.notes {
        parts.push(words(&format!("note: {note}"), "small"));
    }

    let all = stack(parts);
    let width = all.width + 2 * GAP;
    let height = all.height + 2 * GAP;
    let body = all.body;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n\
         <style>text {{ font-family: sans-serif; font-size: 12px; fill: #222 }} .head {{ font-size: 13px }} \
         .small {{ font-size: 10px; fill: #555 }} .middle {{ text-anchor: middle }} \
         rect {{ stroke: #777 }}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\" stroke=\"none\"/>\n\
         <g transform=\"translate({GAP},{GAP})\">\n{body}</g>\n</svg>\n"
    )
}

fn socket(socket: &SocketMap) -> Drawn {
    let nodes = grid(socket.nodes.iter().map(node).collect(), 2);
    let nics = nics(&socket.nics, nodes.width);
    let mut parts = vec![nodes];
    parts.extend(nics);
    frame(&socket.title, "#f2f2f2", parts)
}

fn node(node: &Node) -> Drawn {
    // Several groups, usually of 8 cores, are drawn beside each other, so each is narrower.
    let columns = if node.groups.len() > 1 { 4 } else { 8 };
    let groups = node.groups.iter().map(|cores| group(cores, columns));
    let groups = grid(groups.collect(), 2);
    let nics = nics(&node.nics, groups.width);
    let mut parts = vec![groups];
    parts.extend(nics);
    frame(&node.title, "#fffbe8", parts)
}

fn group(group: &CacheGroup, columns: usize) -> Drawn {
    let cores = grid(group.cores.iter().map(core).collect(), columns);
    match &group.title {
        Some(title) => frame(title, "#eef4ff", vec![cores]),
        None => cores,
    }
}

fn core(core: &CoreMap) -> Drawn {
    const WIDTH: usize = 60;
    const HEIGHT: usize = 36;
    let fill = match core.nic {
        _ if core.pes.is_empty() => IDLE,
        Some(nic) => COLORS[nic % COLORS.len()],
        None => PLAIN,
    };

    // A label of more than 5 characters and CPUs of more than 9 do not fit the width.
    let pes = pe_ranges(&core.pes);
    let label = if pes.is_empty() {
        String::new()
    } else if pes.len() > 5 {
        format!("{} PEs", core.pes.len())
    } else {
        format!("PE {pes}")
    };
    let mut cpus = core.cpus.to_string();
    if cpus.len() > 9 {
        cpus = format!("{} CPUs", core.cpus.len());
    }

    let mut body = rectangle(WIDTH, HEIGHT, fill);
    body += &text(WIDTH / 2, 16, "middle", &label);
    body += &text(WIDTH / 2, 30, "small middle", &cpus);
    Drawn {
        width: WIDTH,
        height: HEIGHT,
        body,
    }
}

fn nic(nic: &NicBox) -> Drawn {
    const WIDTH: usize = 172;
    const HEIGHT: usize = 38;
    let fill = nic.index.map_or(IDLE, |index| COLORS[index % COLORS.len()]);

    // More than 16 characters do not fit the width beside the name.
    let mut users = pe_names(&nic.pes);
    if users.len() > 16 {
        users = format!("{} PEs", nic.pes.len());
    }
    let title = if users.is_empty() {
        nic.name.clone()
    } else {
        format!("{}: {users}", nic.name)
    };

    let mut body = rectangle(WIDTH, HEIGHT, fill);
    body += &text(6, 16, "", &title);
    body += &text(6, 31, "small", &nic.about);
    Drawn {
        width: WIDTH,
        height: HEIGHT,
        body,
    }
}

/// Draws NICs in rows of this width, that of the objects above them, but at least one in a row.
/// Returns `None` if there are no NICs.
fn nics(nics: &[NicBox], width: usize) -> Option<Drawn> {
    let nics: Vec<Drawn> = nics.iter().map(nic).collect();
    let column = nics.first()?.width + GAP;
    let columns = (width + GAP) / column;
    Some(grid(nics, columns.max(1)))
}

/// Draws a line of text.
fn words(line: &str, class: &str) -> Drawn {
    Drawn {
        width: line.len() * LETTER,
        height: 14,
        body: text(0, 12, class, line),
    }
}

/// Draws a box with a title around parts, which are placed below each other.
fn frame(title: &str, fill: &str, parts: Vec<Drawn>) -> Drawn {
    let inner = stack(parts);
    let width = inner.width.max(title.len() * LETTER) + 2 * GAP;
    let height = inner.height + TITLE + 2 * GAP;
    let mut body = rectangle(width, height, fill);
    body += &text(GAP, GAP + 10, "", title);
    body += &moved(GAP, GAP + TITLE, &inner.body);
    Drawn {
        width,
        height,
        body,
    }
}

/// Places parts below each other.
fn stack(parts: Vec<Drawn>) -> Drawn {
    grid(parts, 1)
}

/// Places parts in rows of `columns` columns. All columns are as wide as the widest part.
fn grid(parts: Vec<Drawn>, columns: usize) -> Drawn {
    let width = parts.iter().map(|part| part.width).max().unwrap_or(0);
    let columns = columns.clamp(1, parts.len().max(1));

    let mut top = 0;
    let mut body = String::new();
    for row in parts.chunks(columns) {
        for (column, part) in row.iter().enumerate() {
            body += &moved(column * (width + GAP), top, &part.body);
        }
        top += row.iter().map(|part| part.height).max().unwrap_or(0) + GAP;
    }
    Drawn {
        width: columns * (width + GAP) - GAP,
        height: top.saturating_sub(GAP),
        body,
    }
}

fn moved(x: usize, y: usize, body: &str) -> String {
    format!("<g transform=\"translate({x},{y})\">\n{body}</g>\n")
}

fn rectangle(width: usize, height: usize, fill: &str) -> String {
    format!("<rect width=\"{width}\" height=\"{height}\" rx=\"3\" fill=\"{fill}\"/>\n")
}

fn text(x: usize, y: usize, class: &str, words: &str) -> String {
    let words = words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    format!("<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{words}</text>\n")
}
