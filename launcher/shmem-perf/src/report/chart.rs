//! A chart of curves over the size of a message or of a team: a line through the medians of each
//! series, a band for their spread, and thin lines for the floors, which are the limits of the
//! machine.

use maud::{Markup, html};

use super::axis::{Axis, LABEL_HEIGHT};
use super::curves::{Spot, Trace};
use super::style::{FLOOR_DASHES, dashes};
use crate::record::Measure;
use crate::units;
use charts::drawing::{Drawing, Tick, hit, label, path, px, shortened, ticks_below, ticks_beside};
use charts::palette::SOFT;

/// The width of a chart of curves or rows and of a heat map, in pixels before a page scales it.
pub const WIDTH: f64 = 660.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 68.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = HEIGHT - 46.0;
/// The width of a label of the horizontal axis.
const LABEL_WIDTH: f64 = 46.0;
/// The names of floors are at the right of the chart: the space beside them, the width of a letter,
/// and the minimum and maximum number of letters. A longer name is cut.
const FLOOR_MARGIN: f64 = 14.0;
const FLOOR_LETTER: f64 = 6.6;
const FLOOR_LETTERS: std::ops::RangeInclusive<usize> = 20..=26;

/// The quantity on the horizontal axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum XAxis {
    Bytes,
    Team,
}

/// Draws the curves of `n_runs` runs.
pub fn draw(measure: Measure, across: XAxis, curves: &[Trace], n_runs: usize) -> Drawing {
    let (floors, own): (Vec<&Trace>, Vec<&Trace>) =
        curves.iter().partition(|curve| curve.color.is_none());

    // Without floors, the plot extends to the margin.
    let (least, most) = FLOOR_LETTERS.into_inner();
    let floor_letters = floors
        .iter()
        .map(|floor| floor.lettered(&floor.name, n_runs).chars().count())
        .max()
        .map_or(0, |n| n.clamp(least, most));
    let right = WIDTH - FLOOR_MARGIN - floor_letters as f64 * FLOOR_LETTER;

    let spots: Vec<&Spot> = curves.iter().flat_map(|curve| &curve.spots).collect();
    // The markers at the ends are not cut by the frame.
    let xs = Axis::doubling(spots.iter().map(|spot| spot.x), (LEFT + 8.0, right - 8.0));
    let ys = if measure == Measure::Overlap {
        // Percent.
        Axis::linear(100.0, (BOTTOM, TOP))
    } else {
        let values = spots
            .iter()
            .flat_map(|spot| [spot.value, spot.low, spot.high]);
        Axis::log(values, (BOTTOM, TOP))
    };

    let mut places: Vec<u64> = spots.iter().map(|spot| spot.x).collect();
    places.sort_unstable();
    places.dedup();
    let plot = Plot {
        xs,
        ys,
        places,
        right,
        n_runs,
    };

    let content = html! {
        (plot.frame(measure, across))
        @if spots.iter().any(|spot| ys.has(spot.value)) {
            @for curve in &own { (plot.band(curve)) }
            // Floors first, so that the other curves cover them.
            @for curve in floors.iter().chain(&own) { (plot.line(curve)) }
            (plot.floor_names(&floors))
        } @else {
            (label(plot.middle((TOP + BOTTOM) / 2.0), "middle", SOFT, "there are no values"))
        }
    };

    let hits = plot.hits(measure, across, curves);
    Drawing {
        width: WIDTH,
        height: HEIGHT,
        content,
        hits,
    }
}

/// The axes and the measures that the parts of a chart share.
struct Plot {
    xs: Axis,
    ys: Axis,
    /// The sizes for which there are values, in ascending order.
    places: Vec<u64>,
    /// The x coordinate, in the drawing, at which the horizontal axis ends.
    right: f64,
    n_runs: usize,
}

impl Plot {
    fn position(&self, x: u64, value: f64) -> (f64, f64) {
        (self.xs.at(x as f64), self.ys.at(value))
    }

    fn middle(&self, y: f64) -> (f64, f64) {
        ((LEFT + self.right) / 2.0, y)
    }

    fn frame(&self, measure: Measure, across: XAxis) -> Markup {
        let title = match across {
            XAxis::Bytes => "bytes",
            XAxis::Team => "PEs in the team",
        };

        let mut beside = Vec::new();
        for y in self.ys.ticks(LABEL_HEIGHT) {
            beside.push(Tick {
                position: self.ys.at(y),
                text: units::tick(measure, y),
            });
        }

        let mut below = Vec::new();
        for x in self.xs.ticks_among(&self.places, LABEL_WIDTH) {
            below.push(Tick {
                position: self.xs.at(x as f64),
                text: match across {
                    XAxis::Bytes => units::size(x),
                    XAxis::Team => x.to_string(),
                },
            });
        }

        html! {
            (ticks_beside(&beside, (LEFT, self.right)))
            (ticks_below(&below, (TOP, BOTTOM)))
            path stroke=(SOFT) fill="none"
                d=(path([(LEFT, TOP), (LEFT, BOTTOM), (self.right, BOTTOM)])) {}
            (label(self.middle(BOTTOM + 38.0), "middle", SOFT, title))
        }
    }

    /// Splits a curve at values that the axis cannot show, such as 0.
    fn pieces<'a>(&self, curve: &'a Trace) -> impl Iterator<Item = &'a [Spot]> {
        curve
            .spots
            .split(|spot| !self.ys.has(spot.value))
            .filter(|piece| !piece.is_empty())
    }

    fn band(&self, curve: &Trace) -> Markup {
        html! {
            @for piece in self.pieces(curve).filter(|piece| piece.len() > 1) {
                path fill=(curve.color()) fill-opacity="0.1" d=(self.outline(piece)) {}
            }
        }
    }

    /// Returns the path around a band: along the upper ends of the spreads, and back along the
    /// lower ones.
    fn outline(&self, piece: &[Spot]) -> String {
        let mut points = Vec::new();
        for spot in piece {
            points.push(self.position(spot.x, spot.high));
        }
        for spot in piece.iter().rev() {
            points.push(self.position(spot.x, spot.low));
        }
        path(points) + "z"
    }

    fn line(&self, curve: &Trace) -> Markup {
        let is_floor = curve.color.is_none();
        let width = if is_floor { "1.2" } else { "2" };
        let dashes = if is_floor {
            Some(FLOOR_DASHES)
        } else {
            dashes(curve.run)
        };
        // The floors of several runs differ only in their markers.
        let has_markers = !is_floor || self.n_runs > 1;

        let position = |spot: &Spot| self.position(spot.x, spot.value);
        html! {
            @for piece in self.pieces(curve) {
                path stroke=(curve.color()) stroke-width=(width) stroke-linejoin="round"
                    stroke-dasharray=[dashes] fill="none" d=(path(piece.iter().map(position))) {}
                @for spot in piece {
                    @if has_markers || piece.len() == 1 || spot.is_invalid {
                        (curve.mark(position(spot), spot))
                    }
                }
            }
        }
    }

    /// Returns the names of floors at their right ends, moved apart where they would overlap.
    fn floor_names(&self, floors: &[&Trace]) -> Markup {
        const LINE: f64 = 14.0;

        /// The right end of a floor.
        struct End {
            y: f64,
            name: String,
        }

        let mut ends = Vec::new();
        for floor in floors {
            let mut from_right = floor.spots.iter().rev();
            let Some(last) = from_right.find(|spot| self.ys.has(spot.value)) else {
                continue;
            };
            let name = floor.lettered(&floor.name, self.n_runs);
            ends.push(End {
                y: self.ys.at(last.value),
                name: shortened(&name, *FLOOR_LETTERS.end()),
            });
        }
        ends.sort_by(|a, b| a.y.total_cmp(&b.y));

        // First each name at least a line below the one above it, then, from the lowest one up,
        // none below the end of the axis.
        let mut above = f64::MIN;
        for end in &mut ends {
            end.y = end.y.max(above + LINE);
            above = end.y;
        }
        let mut below = BOTTOM + LINE;
        for end in ends.iter_mut().rev() {
            end.y = end.y.min(below - LINE);
            below = end.y;
        }

        html! {
            @for End { y, name } in ends {
                (label((self.right + 2.0, y + 4.0), "start", SOFT, &name))
            }
        }
    }

    /// Returns a strip for each size, which shows the values of all curves under the pointer.
    fn hits(&self, measure: Measure, across: XAxis, curves: &[Trace]) -> Markup {
        // The strips meet in the middle between two sizes.
        let mut edges = vec![LEFT];
        for pair in self.places.windows(2) {
            let [left, right] = [pair[0], pair[1]].map(|x| self.xs.at(x as f64));
            edges.push(px((left + right) / 2.0));
        }
        edges.push(self.right);

        html! {
            @for (i, x) in self.places.iter().enumerate() {
                @let tip = tip(measure, across, *x, curves, self.n_runs);
                (hit((edges[i], edges[i + 1]), (TOP, BOTTOM), &tip))
            }
        }
    }
}

/// Returns the text for a size or team: a line for the value of each curve there.
fn tip(measure: Measure, across: XAxis, x: u64, curves: &[Trace], n_runs: usize) -> String {
    let mut tip = match across {
        XAxis::Bytes if x == 1 => "1 byte".into(),
        XAxis::Bytes => format!("{} bytes", units::size(x)),
        XAxis::Team => format!("team of {x}"),
    };
    for curve in curves {
        for spot in curve.spots.iter().filter(|spot| spot.x == x) {
            tip += &format!("\n{}", curve.words(measure, spot, n_runs));
        }
    }
    tip
}

#[cfg(test)]
mod tests {
    use super::super::curves::tests::{spot, trace};
    use super::*;

    fn drawn(curves: &[Trace]) -> String {
        draw(Measure::Latency, XAxis::Bytes, curves, 2)
            .svg("")
            .into_string()
    }

    #[test]
    fn nothing_and_a_single_point_are_drawn() {
        assert!(drawn(&[]).contains("there are no values"));
        assert!(drawn(&[trace("put", &[])]).contains("there are no values"));
        assert!(drawn(&[trace("put", &[(8, 0.0)])]).contains("there are no values"));
        let single = drawn(&[trace("put", &[(8, 100.0)])]);
        assert!(
            single.contains("h5v5h-5z") && !single.contains("fill-opacity"),
            "{single}"
        );
    }

    #[test]
    fn a_value_of_zero_ends_a_piece() {
        let spots = [(1, 5.0), (2, 6.0), (4, 0.0), (8, 7.0), (16, 8.0)];
        let text = drawn(&[trace("put", &spots)]);
        assert_eq!(text.matches("stroke-linejoin").count(), 2);
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn the_pointer_finds_the_values() {
        let text = drawn(&[trace("put", &[(1024, 1500.0), (2048, 2500.0)])]);
        let tip = "data-tip=\"1 Ki bytes\nB put: 1.50 us (1.35 us to 3.00 us), n 1\"";
        assert!(text.contains(tip), "{text}");
        assert!(
            text.contains(">2 us</text>") && text.contains(">2 Ki</text>"),
            "{text}"
        );
    }

    #[test]
    fn floors_of_several_runs_have_markers_of_their_own_and_invalid_ones_a_cross() {
        let floor = |run, is_invalid| {
            let spots = [8, 16].map(|x| Spot {
                is_invalid,
                ..spot(x, 9.0)
            });
            Trace {
                color: None,
                run,
                spots: spots.into(),
                ..trace("memcpy", &[])
            }
        };

        let curves = [
            trace("put", &[(8, 5.0), (16, 6.0)]),
            floor(0, false),
            floor(1, true),
        ];

        let text = drawn(&curves);
        assert_eq!(text.matches("<circle").count(), 2, "{text}");
        assert_eq!(text.matches("l7 7m0-7l-7 7").count(), 2, "{text}");

        let position = |name: &str| -> Option<f64> {
            let (before, _) = text.split_once(&format!(">{name}</text>"))?;
            before
                .rsplit_once(" y=\"")?
                .1
                .split('"')
                .next()?
                .parse()
                .ok()
        };
        let [a, b] = ["A memcpy", "B memcpy"].map(|name| position(name).expect("a name"));

        assert!(
            (a - b).abs() >= 14.0,
            "names of floors keep apart: {a} and {b}"
        );
        assert!(text.contains("n 1, invalid as a floor"), "{text}");
    }

    #[test]
    fn what_the_time_limit_cut_short_is_hollow() {
        let late = Spot {
            is_late: true,
            ..spot(8, 5.0)
        };
        let text = drawn(&[Trace {
            spots: vec![late],
            ..trace("put", &[])
        }]);
        assert!(
            text.contains("fill=\"#ffffff\" stroke=\"#0067a5\""),
            "{text}"
        );
        assert!(text.contains("n 1, time up"), "{text}");
    }
}
