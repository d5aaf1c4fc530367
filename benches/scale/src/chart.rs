//! Curves over the number of PEs, as SVG with logarithmic axes.

use anyhow::{Result, anyhow};
use plotters::prelude::*;

/// One line of a chart.
pub struct Curve {
    /// In the legend.
    pub name: String,
    /// PEs and microseconds.
    pub points: Vec<(f64, f64)>,
}

const COLORS: [RGBColor; 5] = [
    RGBColor(31, 119, 180),
    RGBColor(120, 120, 120),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(148, 103, 189),
];

/// The chart of some curves.
///
/// # Errors
/// When it cannot be drawn.
pub fn svg(title: &str, curves: &[Curve]) -> Result<String> {
    let mut text = String::new();
    draw(title, curves, &mut text).map_err(|error| anyhow!("the chart of {title}: {error}"))?;
    Ok(text)
}

fn draw(
    title: &str,
    curves: &[Curve],
    text: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let all = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let (mut max_pes, mut least, mut longest) = (2.0f64, f64::MAX, 0.0f64);
    for (pes, time) in all() {
        max_pes = max_pes.max(pes);
        least = least.min(time);
        longest = longest.max(time);
    }
    let area = SVGBackend::with_string(text, (740, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .margin_right(32)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(
            (2.0..max_pes).log_scale().base(2.0),
            (least / 1.5..longest * 1.5).log_scale(),
        )?;
    chart
        .configure_mesh()
        .x_desc("PEs (64 to a node, 32 nodes to a group)")
        .y_desc("microseconds")
        .x_label_formatter(&|pes| format!("{pes}"))
        .y_label_formatter(&|time| label(*time))
        .light_line_style(WHITE)
        .label_style(("sans-serif", 14))
        .draw()?;
    for (curve, color) in curves.iter().zip(COLORS.iter().cycle()) {
        chart
            .draw_series(LineSeries::new(curve.points.iter().copied(), color.stroke_width(2)))?
            .label(&curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .label_font(("sans-serif", 14))
        .draw()?;
    area.present()?;
    Ok(())
}

/// The label of a time: none between 1, 2 and 5 times a power of ten, where labels would lie on
/// each other.
fn label(time: f64) -> String {
    let leading = format!("{time:e}");
    match leading.split('e').next() {
        Some("1" | "2" | "5") => format!("{time}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_times_have_a_label() {
        assert_eq!([0.5, 1.0, 3.0, 20.0, 900.0].map(label), ["0.5", "1", "", "20", ""]);
    }
}
