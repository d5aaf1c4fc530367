//! The map of all pairs of PEs: rows are from, columns are to, and what stands out is marked and named.
//!
//! Cells of one colour are one path, so that a map of 512 PEs stays small; the script finds the cell under the pointer by its place. This
//! file must never know what makes a pair stand out.

use super::axis::Axis;
use super::chart::WIDTH;
use super::drawing::{Drawing, label, rule};
use super::markup::{Element, px, shortened};
use super::nodes::Nodes;
use super::ramp;
use super::suspects::{Outlier, Slow, Suspects, find};
use crate::record::{Job, Matrix};
use crate::units;

const LEFT: f64 = 66.0;
const TOP: f64 = 64.0;
/// The side of the map, and of a cell at most.
const SIDE: f64 = 468.0;
const CELL: f64 = 96.0;
/// Cells below this get a cross only where few do.
const SMALL: f64 = 8.0;
const MOST_CROSSES: usize = 40;
/// The height of the scale of colours.
const SCALE: f64 = 300.0;
/// PEs up to which a cell has room for its value.
const WITH_VALUES: usize = 10;
/// A letter's width.
const LETTER: f64 = 6.4;

/// A map as a drawing, and what stands out, in sentences.
pub fn draw(matrix: &Matrix, job: &Job) -> (Drawing, Vec<String>) {
    let n = matrix.values.len();
    let nodes = Nodes::new(job, n);
    let found = find(matrix, &nodes.of);
    let cell = (SIDE / n.max(1) as f64).min(CELL);
    let side = n as f64 * cell;
    let area = Element::new("rect")
        .class("absent")
        .with("x", px(LEFT))
        .with("y", px(TOP))
        .with("width", px(side))
        .with("height", px(side));
    let svg = Drawing::new(WIDTH, TOP + side.max(SCALE + 70.0) + 14.0)
        .child(area)
        .children(cells(matrix, &found, cell))
        .children(values(matrix, &found, cell))
        .children(borders(&nodes, cell))
        .children(outliers(n, &found, cell))
        .children(numbers(n, cell))
        .children(node_names(&nodes, cell))
        .child(label(LEFT + side / 2.0, 12.0, "axis", "to PE").with("text-anchor", "middle"))
        .child(
            label(0.0, 0.0, "axis", "from PE")
                .with("text-anchor", "middle")
                .with("transform", format!("translate(12 {}) rotate(-90)", px(TOP + side / 2.0))),
        )
        .children(scale(matrix, &found, cell, LEFT + side + 24.0))
        .child(pointer(matrix, &nodes, cell));
    (svg, sentences(&found, &nodes))
}

fn figure(matrix: &Matrix, from: usize, to: usize) -> Option<f64> {
    let value = matrix.values.get(from)?.get(to).copied().flatten()?;
    Some(value).filter(|value| value.is_finite() && *value > 0.0)
}

/// A path for each colour, and one for the diagonal. Cells beside each other are one stroke.
fn cells(matrix: &Matrix, found: &Suspects, cell: f64) -> Vec<Element> {
    let n = matrix.values.len();
    let mut paths = vec![String::new(); ramp::STEPS];
    let mut diagonal = String::new();
    for from in 0..n {
        let step = |to: usize| figure(matrix, from, to).map(|value| ramp::step(value, found.range));
        let columns: Vec<usize> = (0..n).collect();
        for run in columns.chunk_by(|a, b| step(*a) == step(*b)) {
            if let Some(step) = step(run[0]) {
                paths[step] += &format!("M{} {from}h{len}v1h-{len}z", run[0], len = run.len());
            }
        }
        diagonal += &format!("M{from} {from}h1v1h-1z");
    }
    // The paths count in cells.
    let placed = format!("translate({} {}) scale({cell})", px(LEFT), px(TOP));
    let path = |class: &str, path: String| {
        Element::new("path").class(class).with("transform", &placed).with("d", path)
    };
    let colours = paths.into_iter().enumerate().filter(|(_, path)| !path.is_empty());
    let mut all: Vec<Element> =
        colours.map(|(step, text)| path("cells", text).with("fill", ramp::colour(step))).collect();
    all.push(path("own", diagonal));
    all
}

/// The values in words, where there is room.
fn values(matrix: &Matrix, found: &Suspects, cell: f64) -> Vec<Element> {
    let n = matrix.values.len();
    if !has_values(n) {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (from, to) in (0..n * n).map(|i| (i / n, i % n)) {
        if let Some(value) = figure(matrix, from, to) {
            let class = match ramp::is_light(ramp::step(value, found.range)) {
                true => "in-cell dark",
                false => "in-cell light",
            };
            let (x, y) = (LEFT + (to as f64 + 0.5) * cell, TOP + (from as f64 + 0.5) * cell);
            let text = units::figure(matrix.measure, value);
            let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
            all.push(label(x, y - 1.0, class, number).with("text-anchor", "middle"));
            all.push(label(x, y + 12.0, class, unit).with("text-anchor", "middle"));
        }
    }
    all
}

/// Lines between PEs of different nodes.
fn borders(nodes: &Nodes, cell: f64) -> Vec<Element> {
    let side = nodes.of.len() as f64 * cell;
    let edges = (1..nodes.of.len()).filter(|&pe| nodes.divide && nodes.of[pe] != nodes.of[pe - 1]);
    let line = |pe: usize| {
        let at = pe as f64 * cell;
        [
            rule("border", (LEFT + at, TOP - 4.0), (LEFT + at, TOP + side)),
            rule("border", (LEFT - 4.0, TOP + at), (LEFT + side, TOP + at)),
        ]
    };
    edges.flat_map(line).collect()
}

/// Whether outliers get a sign each: many signs on small cells would hide the map, and these cells become red instead.
fn has_crosses(found: &Suspects, cell: f64) -> bool {
    cell >= SMALL || found.outliers.len() <= MOST_CROSSES
}

/// Whether cells have room for their values.
fn has_values(n: usize) -> bool {
    n <= WITH_VALUES
}

/// What marks an outlier around a place: a cross, or a frame where a cross would hide a value.
fn sign((x, y): (f64, f64), cell: f64, is_frame: bool) -> String {
    // A cell too small for a cross gets one that reaches beyond it.
    let reach = if is_frame { cell * 0.5 - 2.0 } else { (cell * 0.5 - 1.0).clamp(2.5, 12.0) };
    let [left, right, top, bottom] = [x - reach, x + reach, y - reach, y + reach].map(px);
    match is_frame {
        true => format!("M{left} {top}H{right}V{bottom}H{left}z"),
        false => format!("M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}"),
    }
}

fn outliers(n: usize, found: &Suspects, cell: f64) -> Vec<Element> {
    if !has_crosses(found, cell) {
        let square = |one: &Outlier| format!("M{} {}h1v1h-1z", one.to, one.from);
        let squares: String = found.outliers.iter().map(square).collect();
        let placed = format!("translate({} {}) scale({cell})", px(LEFT), px(TOP));
        let path = Element::new("path").class("outlier").with("transform", placed);
        return vec![path.with("d", squares)];
    }
    let sign = |one: &Outlier| {
        let (x, y) = (LEFT + (one.to as f64 + 0.5) * cell, TOP + (one.from as f64 + 0.5) * cell);
        let path = sign((x, y), cell, has_values(n));
        [("halo", path.clone()), ("cross", path)]
    };
    let paths = found.outliers.iter().flat_map(sign);
    paths.map(|(class, path)| Element::new("path").class(class).with("d", path)).collect()
}

/// The numbers of PEs, as many as have room.
fn numbers(n: usize, cell: f64) -> Vec<Element> {
    let steps = [1, 2, 4, 8, 16, 32, 64, 128];
    let step = steps.into_iter().find(|step| *step as f64 * cell >= 22.0).unwrap_or(256);
    let number = |pe: usize| {
        let middle = (pe as f64 + 0.5) * cell;
        [
            label(LEFT + middle, TOP - 8.0, "tick", &pe.to_string()).with("text-anchor", "middle"),
            label(LEFT - 7.0, TOP + middle + 4.0, "tick", &pe.to_string())
                .with("text-anchor", "end"),
        ]
    };
    (0..n).step_by(step).flat_map(number).collect()
}

/// The names of nodes above and at the left, where there is room for a few letters of each.
fn node_names(nodes: &Nodes, cell: f64) -> Vec<Element> {
    let pes: Vec<usize> = (0..nodes.of.len()).collect();
    let groups: Vec<&[usize]> = pes.chunk_by(|a, b| nodes.of[*a] == nodes.of[*b]).collect();
    let narrowest = groups.iter().map(|group| group.len()).min().unwrap_or(0) as f64 * cell;
    if narrowest < 5.0 * LETTER || !nodes.divide {
        return Vec::new();
    }
    let name = |group: &&[usize]| {
        let letters = ((group.len() as f64 * cell - 8.0) / LETTER) as usize;
        let name = shortened(nodes.name(nodes.of[group[0]]), letters);
        let middle = (group[0] as f64 + group.len() as f64 / 2.0) * cell;
        [
            label(LEFT + middle, TOP - 26.0, "node", &name).with("text-anchor", "middle"),
            label(0.0, 0.0, "node", &name).with("text-anchor", "middle").with(
                "transform",
                format!("translate({} {}) rotate(-90)", px(LEFT - 34.0), px(TOP + middle)),
            ),
        ]
    };
    groups.iter().flat_map(name).collect()
}

/// The scale of colours beside the map, and what the other signs mean.
fn scale(matrix: &Matrix, found: &Suspects, cell: f64, x: f64) -> Vec<Element> {
    let block = SCALE / ramp::STEPS as f64;
    let mut all: Vec<Element> = (0..ramp::STEPS)
        .map(|step| {
            Element::new("rect")
                .class("cells")
                .with("x", px(x))
                .with("y", format!("{:.2}", TOP + SCALE - (step + 1) as f64 * block))
                .with("width", 16)
                .with("height", format!("{:.2}", block + 0.3))
                .with("fill", ramp::colour(step))
        })
        .collect();
    // The good end is above.
    let (bad, good) = found.range;
    let place = if bad < good { (TOP + SCALE, TOP) } else { (TOP, TOP + SCALE) };
    let axis = Axis::log_between((bad.min(good), bad.max(good)), place);
    for value in axis.ticks(24.0) {
        let y = axis.at(value);
        all.push(rule("frame", (x + 16.0, y), (x + 20.0, y)));
        all.push(label(x + 24.0, y + 4.0, "tick", &units::tick(matrix.measure, value)));
    }
    let n = matrix.values.len();
    let mut y = TOP + SCALE + 34.0;
    if !found.outliers.is_empty() {
        all.push(match has_crosses(found, cell) {
            true => {
                let path = sign((x + 8.0, y - 4.0), 14.0, has_values(n));
                Element::new("path").class("cross").with("d", path)
            }
            false => {
                let path = format!("M{0} {1}h16v16h-16z", px(x), px(y - 12.0));
                Element::new("path").class("outlier").with("d", path)
            }
        });
        all.push(label(x + 24.0, y, "tick", "outlier"));
        y += 24.0;
    }
    let is_absent = |i: usize| i / n != i % n && figure(matrix, i / n, i % n).is_none();
    if (0..n * n).any(is_absent) {
        let sign = Element::new("rect").class("absent").with("x", px(x)).with("y", px(y - 12.0));
        all.push(sign.with("width", 16).with("height", 16));
        all.push(label(x + 24.0, y, "tick", "no value"));
    }
    all
}

/// What the script needs to tell the values under the pointer: names of PEs and figures, row by row.
fn pointer(matrix: &Matrix, nodes: &Nodes, cell: f64) -> Element {
    let n = matrix.values.len();
    let pe = |pe: usize| format!("PE {pe} on {}", nodes.name(nodes.of[pe]).replace('|', "/"));
    let value = |i: usize| match figure(matrix, i / n, i % n) {
        Some(value) => units::figure(matrix.measure, value),
        None => String::new(),
    };
    let pes: Vec<String> = (0..n).map(pe).collect();
    let values: Vec<String> = (0..n * n).map(value).collect();
    let cursor = Element::new("rect")
        .class("cursor")
        .with("width", px(cell))
        .with("height", px(cell))
        .with("visibility", "hidden");
    let area = Element::new("rect")
        .class("hit map")
        .with("x", px(LEFT))
        .with("y", px(TOP))
        .with("width", px(n as f64 * cell))
        .with("height", px(n as f64 * cell))
        .with("data-pes", pes.join("|"))
        .with("data-values", values.join("|"));
    Element::new("g").child(cursor).child(area)
}

/// What stands out, the larger things first.
fn sentences(found: &Suspects, nodes: &Nodes) -> Vec<String> {
    const MOST: usize = 6;
    let direction = |slow: &Slow| match (slow.from, slow.to) {
        (Some(from), Some(to)) => format!("from it take {from:.1} times and to it {to:.1} times"),
        (Some(from), None) => format!("from it take {from:.1} times"),
        (_, to) => format!("to it take {:.1} times", to.unwrap_or(1.0)),
    };
    let mut all = Vec::new();
    for slow in found.nodes.iter().take(MOST) {
        let name = nodes.name(slow.which);
        all.push(format!(
            "Node {}: transfers with other nodes {} as long as those of the other nodes.",
            name.strip_prefix("node ").unwrap_or(name),
            direction(slow)
        ));
    }
    for slow in found.pes.iter().take(MOST) {
        all.push(format!(
            "PE {}: transfers within its node {} as long as those of other PEs.",
            slow.which,
            direction(slow)
        ));
    }
    for one in found.outliers.iter().take(MOST) {
        all.push(format!(
            "PE {} to PE {}: {:.1} times as long as other pairs {}.",
            one.from,
            one.to,
            one.times,
            match nodes.of[one.from] == nodes.of[one.to] {
                true => "within a node",
                false => "between nodes",
            }
        ));
    }
    if found.outliers.len() > MOST {
        all.push(format!("And {} more pairs.", found.outliers.len() - MOST));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{Host, Measure, PeInfo};

    fn job(n: u32, per_host: u32) -> Job {
        let host = |i| Host {
            name: format!("n{i}"),
            cpu: String::new(),
            n_cpus: 1,
            kernel: String::new(),
            numa_nodes: Vec::new(),
            nics: Vec::new(),
        };
        let pe = |pe| PeInfo { host: pe / per_host, node: None, cpus: String::new() };
        Job { hosts: (0..n.div_ceil(per_host)).map(host).collect(), pes: (0..n).map(pe).collect() }
    }

    fn matrix(n: usize) -> Matrix {
        let row =
            |from| (0..n).map(|to| (from != to).then(|| 100.0 + (from * to % 7) as f64)).collect();
        let values = (0..n).map(row).collect();
        Matrix { measure: Measure::Latency, operation: "put".into(), nbytes: 8, values }
    }

    #[test]
    fn the_slow_nic_and_the_bad_cable_are_named() {
        let run = fixture::run(1, 1.0);
        for matrix in &run.matrices {
            let (svg, sentences) = draw(matrix, &run.job);
            assert_eq!(sentences.len(), 2, "{sentences:?}");
            assert!(sentences[0].contains(fixture::HOSTS[fixture::SLOW]), "{sentences:?}");
            assert!(sentences[1].contains("PE 1 to PE 14"), "{sentences:?}");
            let text = svg.svg().to_string();
            let crosses = text.matches("class=\"cross\"").count();
            assert_eq!(crosses, 2, "one in the map, one in the legend");
            assert!(text.contains("no value"));
        }
    }

    #[test]
    fn maps_of_any_size_are_drawn() {
        for n in [0, 1, 2, 3, 512] {
            let (svg, _) = draw(&matrix(n), &job(n as u32, 8));
            let text = svg.svg().to_string();
            assert!(!text.contains("NaN") && !text.contains("inf"), "{n} PEs");
            assert!(text.len() < 7_000_000, "{n} PEs take {} bytes", text.len());
        }
        assert!(draw(&matrix(2), &job(2, 1)).0.svg().to_string().contains("in-cell"));
        let mut few = matrix(4);
        few.values[1][2] = Some(9000.0);
        let text = draw(&few, &job(4, 8)).0.svg().to_string();
        assert!(text.contains("class=\"cross\" d=\"M") && text.contains("in-cell"), "{text}");
        let mut spotted = matrix(128);
        (0..50).for_each(|i| spotted.values[i][i + 60] = Some(900.0));
        let text = draw(&spotted, &job(128, 8)).0.svg().to_string();
        assert!(text.contains("class=\"outlier\"") && !text.contains("class=\"cross\""));
        let ragged =
            Matrix { values: vec![vec![None], vec![Some(1.0), Some(f64::NAN)]], ..matrix(2) };
        assert!(
            !draw(&ragged, &Job { hosts: Vec::new(), pes: Vec::new() })
                .0
                .svg()
                .to_string()
                .contains("NaN")
        );
    }
}
