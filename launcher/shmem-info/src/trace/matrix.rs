//! The drawing of the bytes between PEs.

use charts::drawing::{Drawing, hit, label, px, upright_label};
use charts::palette::{ABSENT, ColorRange, SOFT, on_step, step, step_color};
use maud::html;
use rushmem_trace::job::JobTrace;

use super::{LEFT, ROWS, WIDTH};

/// The upper edge of the matrix.
const TOP: f64 = 40.0;
/// The maximum side of the matrix.
const SIDE: f64 = 468.0;
/// The maximum side of a cell.
const CELL: f64 = 60.0;
/// A matrix of at most this many rows has numbers in its cells. A larger one has labels at about
/// this many rows.
const WITH_VALUES: usize = 12;

/// Draws a cell for each pair of PEs, or of groups of PEs. The PE of the row has issued the
/// operations, the PE of the column was their target.
pub fn draw(job: &JobTrace) -> Drawing {
    let pes_per_row = job.n_pes().div_ceil(ROWS as u32);
    let bytes = job.matrix(pes_per_row);
    let n = bytes.len();

    // Pairs without a byte have no cell.
    let mut cells = Vec::new();
    for (from, row) in bytes.iter().enumerate() {
        for (to, &nbytes) in row.iter().enumerate() {
            if nbytes > 0 {
                cells.push(Cell { from, to, nbytes });
            }
        }
    }
    let most = cells.iter().map(|cell| cell.nbytes).max().unwrap_or(0);
    let colors = ColorRange {
        worst: 1.0,
        // The scale needs two different ends.
        best: most.max(2) as f64,
    };

    let width = side_of_cell(n);
    let side = n as f64 * width;
    let x = |to: usize| LEFT + to as f64 * width;
    let y = |from: usize| TOP + from as f64 * width;
    let content = html! {
        rect fill=(ABSENT) x=(LEFT) y=(TOP) width=(px(side)) height=(px(side)) {}
        @for cell in &cells {
            @let color = step(cell.nbytes as f64, colors);
            rect fill=(step_color(color)) x=(px(x(cell.to))) y=(px(y(cell.from)))
                width=(px(width)) height=(px(width)) {}
            @if n <= WITH_VALUES {
                @let middle = (x(cell.to) + width / 2.0, y(cell.from) + width / 2.0 + 4.0);
                (label(middle, "middle", on_step(color), &size(cell.nbytes)))
            }
        }
        @for i in (0..n).step_by(n.div_ceil(WITH_VALUES)) {
            @let first = (i as u32 * pes_per_row).to_string();
            (label((x(i) + width / 2.0, TOP - 6.0), "middle", SOFT, &first))
            (label((LEFT - 6.0, y(i) + width / 2.0 + 4.0), "end", SOFT, &first))
        }
        (label((LEFT + side / 2.0, 14.0), "middle", SOFT, "to PE"))
        (upright_label((16.0, TOP + side / 2.0), "from PE"))
    };

    let pes = |row: usize| pes_of_row(row as u32, pes_per_row, job.n_pes());
    let hits = html! {
        @for Cell { from, to, nbytes } in cells {
            @let tip = format!("{} to {}: {nbytes} bytes", pes(from), pes(to));
            (hit((x(to), x(to + 1)), (y(from), y(from + 1)), &tip))
        }
    };

    Drawing {
        width: LEFT + WIDTH,
        height: TOP + side + 10.0,
        content,
        hits,
    }
}

/// Returns the side of a cell of a matrix of `n` rows.
fn side_of_cell(n: usize) -> f64 {
    (SIDE / n as f64).min(CELL)
}

/// Returns the PEs of a row or column of the matrix in words.
fn pes_of_row(row: u32, pes_per_row: u32, n_pes: u32) -> String {
    let first = row * pes_per_row;
    // The last row may have fewer PEs.
    let last = n_pes.min(first + pes_per_row) - 1;
    if first == last {
        format!("PE {first}")
    } else {
        format!("PEs {first} to {last}")
    }
}

/// A cell of the matrix: the bytes from the PEs of a row to those of a column.
struct Cell {
    from: usize,
    to: usize,
    nbytes: u64,
}

/// Formats a number of bytes so that it fits a cell of the matrix.
fn size(nbytes: u64) -> String {
    let value = nbytes as f64;
    match nbytes {
        0..10_000 => nbytes.to_string(),
        10_000..10_000_000 => format!("{:.0}K", value / 1e3),
        10_000_000..10_000_000_000 => format!("{:.0}M", value / 1e6),
        _ => format!("{:.0}G", value / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_of_any_size_fits_the_page() {
        assert_eq!(side_of_cell(1), CELL);
        for n in 1..=ROWS {
            assert!((n as f64 * side_of_cell(n)).round() <= SIDE, "{n} rows");
        }
    }
}
