//! The parts of a page: drawings with their titles and legends, which can also be written as SVG
//! files, tables, and the sections that contain both.

use maud::{Markup, html};

use super::style::Entry;
use crate::operation::kind_of;
use crate::record::{Measure, Series};
use crate::units;
use charts::drawing::{Drawing, FONT, printable, px};
use charts::palette::{CARD, INK, SOFT};

/// Distances in an SVG file, in pixels: the baselines of the title and of the note, the margin, and
/// the height of a line of the legend.
const TITLE: f64 = 22.0;
const NOTE: f64 = 40.0;
const MARGIN: f64 = 12.0;
const LEGEND_LINE: f64 = 22.0;
/// The width of a swatch with its gaps, and the average width of a letter.
const SWATCH: f64 = 56.0;
const LETTER: f64 = 6.8;

/// A drawing, and the text around it.
pub struct Figure {
    pub title: String,
    /// A note on the whole figure, below the title.
    pub note: String,
    pub drawing: Drawing,
    pub legend: Vec<Entry>,
    /// Sentences about outliers; `None` if the figure is not searched for outliers.
    pub found: Option<Vec<String>>,
}

impl Figure {
    /// Returns a figure that is not searched for outliers.
    pub fn new(title: String, note: String, drawing: Drawing, legend: Vec<Entry>) -> Self {
        Self {
            title,
            note,
            drawing,
            legend,
            found: None,
        }
    }

    /// Returns the figure as a part of the page.
    pub fn part(&self) -> Markup {
        html! {
            figure {
                figcaption {
                    h3 { (self.title) }
                    p .note { (self.note) }
                }
                (self.drawing.svg(&self.title))
                @if !self.legend.is_empty() { (legend_markup(&self.legend)) }
                @match self.found.as_deref() {
                    None => {}
                    Some([]) => { p .note { "No node, PE or pair stands out." } }
                    Some(sentences) => { ul .found { @for it in sentences { li { (it) } } } }
                }
            }
        }
    }

    /// Returns the figure as the text of an SVG file, which needs no style sheet.
    pub fn picture(&self) -> String {
        let Drawing {
            width: inner_width,
            height: inner_height,
            content,
            ..
        } = &self.drawing;

        let width = inner_width + 2.0 * MARGIN;
        let top = if self.note.is_empty() {
            TITLE + MARGIN
        } else {
            NOTE + MARGIN
        };

        let mut below = top + inner_height + MARGIN;
        let mut at = MARGIN;
        let mut entries = Vec::new();
        for entry in &self.legend {
            let room = SWATCH + LETTER * entry.text.chars().count() as f64;
            if at > MARGIN && at + room > width {
                at = MARGIN;
                below += LEGEND_LINE;
            }
            entries.push((entry, at, below));
            at += room;
        }

        let height = if entries.is_empty() {
            below
        } else {
            below + LEGEND_LINE
        };

        let [width, height, inner_width, inner_height] =
            [width, height, *inner_width, *inner_height].map(px);
        let picture = html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) }
                width=(width) height=(height) font-family=(FONT) font-size="12" {
                title { (self.title) }
                rect fill=(CARD) width="100%" height="100%" {}
                text x=(MARGIN) y=(TITLE) fill=(INK) font-size="14" font-weight="600" { (self.title) }
                @if !self.note.is_empty() { text x=(MARGIN) y=(NOTE) fill=(SOFT) { (self.note) } }
                svg viewBox={ "0 0 " (inner_width) " " (inner_height) } role="img"
                    x=(MARGIN) y=(top) width=(inner_width) height=(inner_height) { (content) }
                @for (entry, x, y) in entries {
                    (entry.swatch(x, y))
                    text x=(px(x + 38.0)) y=(px(y + 11.0)) fill=(INK) { (entry.text) }
                }
            }
        };

        printable(picture) + "\n"
    }
}

/// Returns a legend as a part of the page.
pub fn legend_markup(entries: &[Entry]) -> Markup {
    html! {
        div .legend { @for entry in entries { span { (entry.swatch(0.0, 0.0)) (entry.text) } } }
    }
}

/// Returns file names for figures: their titles in lower case, with numbers where titles are equal.
pub fn file_names(figures: &[&Figure]) -> Vec<String> {
    let letter = |c: char| {
        if c.is_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            ' '
        }
    };
    let mut names: Vec<String> = Vec::new();
    for Figure { title, .. } in figures {
        let spaced: String = title.chars().map(letter).collect();
        let name = spaced.split_whitespace().collect::<Vec<_>>().join("-");
        let numbered = (2..).map(|number| format!("{name}-{number}.svg"));
        let mut candidates = std::iter::once(format!("{name}.svg")).chain(numbered);
        names.extend(candidates.find(|candidate| !names.contains(candidate)));
    }
    names
}

/// A part of the page under a heading of its own.
pub struct ReportSection {
    pub id: &'static str,
    pub title: &'static str,
    pub body: Vec<Part>,
}

/// A piece of a section.
pub enum Part {
    Text(Markup),
    /// Figures side by side.
    Figures(Vec<Figure>),
    /// Small figures side by side.
    SmallFigures(Vec<Figure>),
}

impl Part {
    /// Returns the piece as a part of the page.
    pub fn markup(&self) -> Markup {
        let class = match self {
            Part::Text(text) => return text.clone(),
            Part::Figures(_) => "charts",
            Part::SmallFigures(_) => "charts small",
        };
        html! { div class=(class) { @for figure in self.figures() { (figure.part()) } } }
    }

    pub fn figures(&self) -> &[Figure] {
        match self {
            Part::Text(_) => &[],
            Part::Figures(figures) | Part::SmallFigures(figures) => figures,
        }
    }

    /// Returns a paragraph of less important text.
    pub fn note(text: &str) -> Self {
        Part::Text(html! { p .note { (text) } })
    }
}

/// Returns the kinds of operations of some series, in the order of their first series, each with
/// its operations.
pub fn kinds(series: &[(usize, &Series)]) -> Vec<(&'static str, Vec<String>)> {
    let mut kinds: Vec<(&str, Vec<String>)> = Vec::new();
    for (_, series) in series {
        let kind = kind_of(&series.operation);
        let at = kinds
            .iter()
            .position(|(other, _)| *other == kind)
            .unwrap_or_else(|| {
                kinds.push((kind, Vec::new()));
                kinds.len() - 1
            });
        if !kinds[at].1.contains(&series.operation) {
            kinds[at].1.push(series.operation.clone());
        }
    }
    kinds
}

/// Returns the title of a chart: the measure, the kind of operations if it is not empty, and
/// `more`.
pub fn chart_title(measure: Measure, kind: &str, more: &str) -> String {
    let name = units::name(measure);
    let of_kind = if kind.is_empty() {
        String::new()
    } else {
        format!(" of {kind}")
    };
    format!("{name}{of_kind}{more}")
}

/// Returns a table whose columns from index `numbers` on are aligned at the right.
pub fn table(head: &[String], rows: &[Vec<String>], numbers: usize) -> Markup {
    let class = |column| (column >= numbers).then_some("number");
    html! {
        div .wide {
            table {
                thead { tr { @for (i, text) in head.iter().enumerate() { th class=[class(i)] { (text) } } } }
                tbody {
                    @for row in rows {
                        tr { @for (i, text) in row.iter().enumerate() { td class=[class(i)] { (text) } } }
                    }
                }
            }
        }
    }
}
