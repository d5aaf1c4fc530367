//! The heat map of all pairs of PEs: rows are the PEs that issue, columns their targets. Outliers
//! are marked, and sentences name them.
//!
//! All cells of one color are one path, so that the map of 512 PEs is a small file. The script of
//! the page computes the cell under the pointer from the pointer's position.

use maud::{Markup, html};

use super::axis::Axis;
use super::chart::WIDTH;
use super::nodes::NodeNames;
use super::suspects::{Slow, Suspects, find};
use crate::record::{JobInfo, Matrix};
use crate::units;
use charts::drawing::{Drawing, label, px, rule, shortened, upright_label};
use charts::palette::{ABSENT, CARD, ColorRange, RED, SOFT, STEPS, on_step, step, step_color};

const LEFT: f64 = 66.0;
const TOP: f64 = 64.0;
/// The maximum side of the map, and of a cell, in pixels.
const SIDE: f64 = 468.0;
const CELL: f64 = 96.0;
/// On cells smaller than this, outliers get crosses only if there are at most `MOST_CROSSES`.
const SMALL: f64 = 8.0;
const MOST_CROSSES: usize = 40;
/// The height of the scale of colors.
const SCALE: f64 = 300.0;
/// The maximum number of PEs for which a cell has room for its value.
const WITH_VALUES: usize = 10;
/// The width of a letter.
const LETTER: f64 = 6.4;

/// A map, and what it shows in words.
pub struct HeatMap {
    pub drawing: Drawing,
    /// Sentences on the slow nodes and PEs and the outliers.
    pub sentences: Vec<String>,
}

/// Draws a map.
pub fn draw(matrix: &Matrix, job: &JobInfo) -> HeatMap {
    let n = matrix.values.len();
    let nodes = NodeNames::new(job, n);
    let found = find(matrix, &nodes.of_pe);
    let sentences = sentences(&found, &nodes);

    let cell = (SIDE / n.max(1) as f64).min(CELL);
    let side = n as f64 * cell;
    let map = Map {
        matrix,
        nodes,
        found,
        n,
        cell,
        side,
    };

    let content = html! {
        rect fill=(ABSENT) x=(LEFT) y=(TOP) width=(px(side)) height=(px(side)) {}
        (map.cells())
        @if n <= WITH_VALUES { (map.values()) }
        (map.borders())
        (map.outliers())
        (map.numbers())
        (map.node_names())
        (label((LEFT + side / 2.0, 12.0), "middle", SOFT, "to PE"))
        (upright_label((12.0, TOP + side / 2.0), "from PE"))
        (map.scale(LEFT + side + 24.0))
    };
    let drawing = Drawing {
        width: WIDTH,
        // Below the scale there is room for the meaning of two signs.
        height: TOP + side.max(SCALE + 70.0) + 14.0,
        content,
        hits: map.hits(),
    };
    HeatMap { drawing, sentences }
}

/// A map: the data and the measures that its parts share.
struct Map<'a> {
    matrix: &'a Matrix,
    nodes: NodeNames,
    found: Suspects,
    n: usize,
    /// The sides of a cell and of the map.
    cell: f64,
    side: f64,
}

impl Map<'_> {
    fn figure(&self, from: usize, to: usize) -> Option<f64> {
        let value = self.matrix.values.get(from)?.get(to).copied().flatten()?;
        // A record may have been written by hand.
        if !value.is_finite() || value <= 0.0 {
            return None;
        }
        Some(value)
    }

    fn step(&self, from: usize, to: usize) -> Option<usize> {
        self.figure(from, to)
            .map(|value| step(value, self.found.range))
    }

    /// Returns the middle of a cell.
    fn position(&self, from: usize, to: usize) -> (f64, f64) {
        (
            LEFT + (to as f64 + 0.5) * self.cell,
            TOP + (from as f64 + 0.5) * self.cell,
        )
    }

    /// Fills a path whose coordinates are in cells.
    fn filled(&self, color: &str, path: &str) -> Markup {
        let placed = format!("translate({LEFT} {TOP}) scale({})", self.cell);
        html! {
            path fill=(color) shape-rendering="crispEdges" transform=(placed) d=(path) {}
        }
    }

    /// Returns a path for each color, and one for the diagonal. Neighboring cells of a row that
    /// have the same color are one rectangle.
    fn cells(&self) -> Markup {
        let mut paths = vec![String::new(); STEPS];
        let mut diagonal = String::new();
        let columns: Vec<usize> = (0..self.n).collect();
        for from in 0..self.n {
            for run in columns.chunk_by(|&a, &b| self.step(from, a) == self.step(from, b)) {
                if let Some(step) = self.step(from, run[0]) {
                    paths[step] += &format!("M{} {from}h{len}v1h-{len}z", run[0], len = run.len());
                }
            }
            diagonal += &format!("M{from} {from}h1v1h-1z");
        }
        html! {
            @for (step, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
                (self.filled(&step_color(step), path))
            }
            (self.filled(CARD, &diagonal))
        }
    }

    fn values(&self) -> Markup {
        html! {
            @for from in 0..self.n {
                @for to in 0..self.n {
                    @if let Some(value) = self.figure(from, to) {
                        (self.value(from, to, value))
                    }
                }
            }
        }
    }

    /// Returns a value on its cell, with the unit in a line of its own.
    fn value(&self, from: usize, to: usize, value: f64) -> Markup {
        let color = on_step(step(value, self.found.range));
        let (x, y) = self.position(from, to);
        let text = units::figure(self.matrix.measure, value);
        html! {
            @for (line, word) in text.split(' ').enumerate() {
                (label((x, y - 1.0 + 13.0 * line as f64), "middle", color, word))
            }
        }
    }

    /// Returns lines between PEs of different nodes.
    fn borders(&self) -> Markup {
        let right = LEFT + self.side;
        let bottom = TOP + self.side;
        let of_pe = &self.nodes.of_pe;
        html! {
            g stroke-width="2.4" {
                @for pe in 1..self.n {
                    @if self.nodes.divide && of_pe[pe] != of_pe[pe - 1] {
                        @let before_pe = pe as f64 * self.cell;
                        (rule(CARD, (LEFT + before_pe, TOP - 4.0), (LEFT + before_pe, bottom)))
                        (rule(CARD, (LEFT - 4.0, TOP + before_pe), (right, TOP + before_pe)))
                    }
                }
            }
        }
    }

    /// Returns true if each outlier gets a sign of its own. Many signs on small cells would hide
    /// the map; there the cells themselves become red.
    fn has_signs(&self) -> bool {
        self.cell >= SMALL || self.found.outliers.len() <= MOST_CROSSES
    }

    /// Returns the sign of an outlier: a cross, or a frame where a cross would hide a value.
    fn sign(&self, (x, y): (f64, f64), cell: f64) -> String {
        let is_frame = self.n <= WITH_VALUES;
        // The cross of a very small cell reaches beyond it.
        let reach = if is_frame {
            cell * 0.5 - 2.0
        } else {
            (cell * 0.5 - 1.0).clamp(2.5, 12.0)
        };
        let [left, right, top, bottom] = [x - reach, x + reach, y - reach, y + reach].map(px);
        if is_frame {
            format!("M{left} {top}H{right}V{bottom}H{left}z")
        } else {
            format!("M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}")
        }
    }

    fn outliers(&self) -> Markup {
        let outliers = &self.found.outliers;
        if !self.has_signs() {
            let mut squares = String::new();
            for one in outliers {
                squares += &format!("M{} {}h1v1h-1z", one.to, one.from);
            }
            return self.filled(RED, &squares);
        }

        // The white line below keeps the red one apart from a dark cell.
        html! {
            @for one in outliers {
                @let sign = self.sign(self.position(one.from, one.to), self.cell);
                path stroke="white" stroke-width="4.5" fill="none" d=(sign) {}
                path stroke=(RED) stroke-width="2.2" fill="none" d=(sign) {}
            }
        }
    }

    /// Returns the numbers of the PEs: of all, or of every second one, and so on, where there is
    /// room.
    fn numbers(&self) -> Markup {
        /// The distance at which numbers of three digits do not touch.
        const ROOM: f64 = 22.0;
        let mut step = 1;
        while (step as f64) * self.cell < ROOM && step < 256 {
            step *= 2;
        }
        html! {
            @for pe in (0..self.n).step_by(step) {
                @let (x, y) = self.position(pe, pe);
                (label((x, TOP - 8.0), "middle", SOFT, &pe.to_string()))
                (label((LEFT - 7.0, y + 4.0), "end", SOFT, &pe.to_string()))
            }
        }
    }

    /// Returns the names of nodes above and at the left, where there is room for a few letters of
    /// each.
    fn node_names(&self) -> Markup {
        let nodes = &self.nodes;
        let groups: Vec<&[usize]> = nodes.of_pe.chunk_by(|a, b| a == b).collect();
        let narrowest = groups.iter().map(|group| group.len()).min().unwrap_or(0);
        let has_room = nodes.divide && narrowest as f64 * self.cell >= 5.0 * LETTER;

        if !has_room {
            return html! {};
        }

        let mut start = 0.0;
        let mut names = Vec::new();
        for group in groups {
            let length = group.len() as f64 * self.cell;
            let middle = start + length / 2.0;
            let n_letters = ((length - 8.0) / LETTER) as usize;
            let name = shortened(nodes.name(group[0]), n_letters);
            names.push(html! {
                (label((LEFT + middle, TOP - 26.0), "middle", SOFT, &name))
                (upright_label((LEFT - 34.0, TOP + middle), &name))
            });
            start += length;
        }
        html! { @for name in names { (name) } }
    }

    /// Returns the scale of colors beside the map, and the meaning of the other signs.
    fn scale(&self, x: f64) -> Markup {
        let block = SCALE / STEPS as f64;
        // The good end is above.
        let ColorRange { worst, best } = self.found.range;
        let axis = if worst < best {
            Axis::log_between((worst, best), (TOP + SCALE, TOP))
        } else {
            Axis::log_between((best, worst), (TOP, TOP + SCALE))
        };

        html! {
            @for step in 0..STEPS {
                @let top = TOP + SCALE - (step + 1) as f64 * block;
                // A little higher than its step, so that no gap shows between two of them.
                (block_at((x, top), block + 0.4, &step_color(step)))
            }
            @for value in axis.ticks(24.0) {
                @let y = axis.at(value);
                @let text = units::tick(self.matrix.measure, value);
                (rule(SOFT, (x + 16.0, y), (x + 20.0, y)))
                (label((x + 24.0, y + 4.0), "start", SOFT, &text))
            }
            (self.signs(x, TOP + SCALE + 22.0))
        }
    }

    /// Returns the signs on the map with their meaning, below each other from `y` on.
    fn signs(&self, x: f64, mut y: f64) -> Markup {
        let mut signs = Vec::new();
        if !self.found.outliers.is_empty() {
            let sign = if self.has_signs() {
                let path = self.sign((x + 8.0, y + 8.0), 14.0);
                html! { path stroke=(RED) stroke-width="2.2" fill="none" d=(path) {} }
            } else {
                block_at((x, y), 16.0, RED)
            };
            let meaning = label((x + 24.0, y + 12.0), "start", SOFT, "outlier");
            signs.push(html! { (sign) (meaning) });
            y += 24.0;
        }

        if self.lacks_a_value() {
            let sign = block_at((x, y), 16.0, ABSENT);
            let meaning = label((x + 24.0, y + 12.0), "start", SOFT, "no value");
            signs.push(html! { (sign) (meaning) });
        }
        html! { @for sign in signs { (sign) } }
    }

    fn lacks_a_value(&self) -> bool {
        for from in 0..self.n {
            for to in 0..self.n {
                if from != to && self.figure(from, to).is_none() {
                    return true;
                }
            }
        }
        false
    }

    /// Returns the area under the pointer, with the PEs and the figures for the script, row by row.
    fn hits(&self) -> Markup {
        let mut pes = Vec::new();
        let mut values = Vec::new();
        for from in 0..self.n {
            // The script splits the texts at each `|`.
            let node = self.nodes.name(self.nodes.of_pe[from]).replace('|', "/");
            pes.push(format!("PE {from} on {node}"));
            for to in 0..self.n {
                values.push(match self.figure(from, to) {
                    Some(value) => units::figure(self.matrix.measure, value),
                    None => String::new(),
                });
            }
        }
        html! {
            rect .cursor width=(px(self.cell)) height=(px(self.cell)) visibility="hidden" {}
            rect .hit.map x=(LEFT) y=(TOP) width=(px(self.side)) height=(px(self.side))
                data-pes=(pes.join("|")) data-values=(values.join("|")) {}
        }
    }
}

fn block_at((x, y): (f64, f64), height: f64, color: &str) -> Markup {
    html! {
        rect shape-rendering="crispEdges" x=(px(x)) y=(px(y)) width="16" height=(px(height))
            fill=(color) {}
    }
}

/// Returns sentences about slow nodes, slow PEs, and outliers; the slowest outliers first.
fn sentences(found: &Suspects, nodes: &NodeNames) -> Vec<String> {
    const MOST: usize = 6;
    let mut all = Vec::new();
    for slow in found.nodes.iter().take(MOST) {
        let name = nodes.name(slow.which);
        all.push(format!(
            "Node {}: transfers with other nodes {} as long as those of the other nodes.",
            name.strip_prefix("node ").unwrap_or(name),
            directions(slow)
        ));
    }

    for slow in found.pes.iter().take(MOST) {
        all.push(format!(
            "PE {}: transfers within its node {} as long as those of other PEs.",
            slow.which,
            directions(slow)
        ));
    }

    for one in found.outliers.iter().take(MOST) {
        let position = if nodes.of_pe[one.from] == nodes.of_pe[one.to] {
            "within a node"
        } else {
            "between nodes"
        };
        all.push(format!(
            "PE {} to PE {}: {:.1} times as long as other pairs {position}.",
            one.from, one.to, one.times
        ));
    }
    if found.outliers.len() > MOST {
        all.push(format!("And {} more pairs.", found.outliers.len() - MOST));
    }
    all
}

/// Says in which directions a node or a PE is slow, and how much.
fn directions(slow: &Slow) -> String {
    match (slow.from, slow.to) {
        (Some(from), Some(to)) => format!("from it take {from:.1} times and to it {to:.1} times"),
        (Some(from), None) => format!("from it take {from:.1} times"),
        (_, to) => format!("to it take {:.1} times", to.unwrap_or(1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{HostInfo, Measure, PeInfo};

    fn job(n: u32, per_host: u32) -> JobInfo {
        let hosts = (0..n.div_ceil(per_host)).map(|i| HostInfo {
            name: format!("n{i}"),
            cpu: String::new(),
            n_cpus: 1,
            load: 0.0,
            kernel: String::new(),
            numa_nodes: Vec::new(),
            nics: Vec::new(),
        });
        let pes = (0..n).map(|pe| PeInfo {
            host: pe / per_host,
            node: None,
            cpus: String::new(),
        });
        JobInfo {
            hosts: hosts.collect(),
            pes: pes.collect(),
        }
    }

    fn matrix(n: usize) -> Matrix {
        let mut values = vec![vec![None; n]; n];
        for (from, row) in values.iter_mut().enumerate() {
            for (to, value) in row.iter_mut().enumerate() {
                if from != to {
                    *value = Some(100.0 + (from * to % 7) as f64);
                }
            }
        }
        Matrix {
            measure: Measure::Latency,
            operation: "put".into(),
            nbytes: 8,
            values,
        }
    }

    fn text(matrix: &Matrix, job: &JobInfo) -> String {
        draw(matrix, job).drawing.svg("").into_string()
    }

    fn crosses(text: &str) -> usize {
        text.matches("stroke=\"#d11a2a\"").count()
    }

    #[test]
    fn the_slow_nic_and_the_bad_cable_are_named() {
        let run = fixture::run(1, 1.0);
        for matrix in &run.matrices {
            let sentences = draw(matrix, &run.job).sentences;
            assert_eq!(sentences.len(), 2, "{sentences:?}");
            assert!(
                sentences[0].contains(fixture::HOSTS[fixture::SLOW]),
                "{sentences:?}"
            );
            assert!(sentences[1].contains("PE 1 to PE 14"), "{sentences:?}");
            let text = text(matrix, &run.job);
            assert_eq!(crosses(&text), 2, "one in the map, one in the legend");
            assert!(text.contains("no value"));
        }
    }

    #[test]
    fn maps_of_any_size_are_drawn() {
        for n in [0, 1, 2, 3, 512] {
            let text = text(&matrix(n), &job(n as u32, 8));
            assert!(!text.contains("NaN") && !text.contains("inf"), "{n} PEs");
            assert!(text.len() < 7_000_000, "{n} PEs take {} bytes", text.len());
            assert_eq!(text.contains(">100</text>"), (2..4).contains(&n), "{n} PEs");
        }

        let mut few = matrix(4);
        few.values[1][2] = Some(9000.0);
        let few = text(&few, &job(4, 8));
        assert!(crosses(&few) == 2 && few.contains(">9.00</text>"), "{few}");

        let mut spotted = matrix(128);
        for i in 0..50 {
            spotted.values[i][i + 60] = Some(900.0);
        }
        let spotted = text(&spotted, &job(128, 8));
        assert!(spotted.contains("fill=\"#d11a2a\"") && crosses(&spotted) == 0);

        let ragged = Matrix {
            values: vec![vec![None], vec![Some(1.0), Some(f64::NAN)]],
            ..matrix(2)
        };
        let ragged = text(&ragged, &JobInfo::default());
        assert!(!ragged.contains("NaN"));
    }
}
