//! The parts of a page: drawings with their titles and legends, which can also be written as SVG
//! files, tables, and the sections that contain both.

use maud::{Markup, html};

use super::curves::RunSeries;
use super::style::Entry;
use crate::operation::kind_of;
use crate::record::Measure;
use crate::units;
use charts::drawing::{Drawing, FONT, printable, px};
use charts::palette::{CARD, INK, SOFT};

/// The baseline of the title in an SVG file, in pixels.
const TITLE: f64 = 22.0;
/// The baseline of the note.
const NOTE: f64 = 40.0;
const MARGIN: f64 = 12.0;
/// The height of a line of the legend.
const LEGEND_LINE: f64 = 22.0;
/// The width of a swatch with its gaps.
const SWATCH: f64 = 56.0;
/// The average width of a letter. The width of a text depends on the reader's font.
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
        let drawing = &self.drawing;
        let width = drawing.width + 2.0 * MARGIN;
        let title_bottom = if self.note.is_empty() { TITLE } else { NOTE };
        let top = title_bottom + MARGIN;

        // The legend is below the drawing, in as many lines as its entries need.
        let mut x = MARGIN;
        let mut y = top + drawing.height + MARGIN;
        let mut entries = Vec::new();
        for entry in &self.legend {
            let entry_width = SWATCH + LETTER * entry.text.chars().count() as f64;
            if x > MARGIN && x + entry_width > width {
                x = MARGIN;
                y += LEGEND_LINE;
            }
            entries.push(PlacedEntry { entry, x, y });
            x += entry_width;
        }

        let mut height = y;
        if !entries.is_empty() {
            height += LEGEND_LINE;
        }

        let width = px(width);
        let height = px(height);
        let inner_width = px(drawing.width);
        let inner_height = px(drawing.height);
        let picture = html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) }
                width=(width) height=(height) font-family=(FONT) font-size="12" {
                title { (self.title) }
                rect fill=(CARD) width="100%" height="100%" {}
                text x=(MARGIN) y=(TITLE) fill=(INK) font-size="14" font-weight="600" { (self.title) }
                @if !self.note.is_empty() { text x=(MARGIN) y=(NOTE) fill=(SOFT) { (self.note) } }
                svg viewBox={ "0 0 " (inner_width) " " (inner_height) } role="img"
                    x=(MARGIN) y=(top) width=(inner_width) height=(inner_height) { (drawing.content) }
                @for PlacedEntry { entry, x, y } in entries {
                    (entry.swatch(x, y))
                    text x=(px(x + 38.0)) y=(px(y + 11.0)) fill=(INK) { (entry.text) }
                }
            }
        };

        printable(picture) + "\n"
    }
}

/// An entry of a legend with its upper left corner.
struct PlacedEntry<'a> {
    entry: &'a Entry,
    x: f64,
    y: f64,
}

/// Returns a legend as a part of the page.
pub fn legend_markup(entries: &[Entry]) -> Markup {
    html! {
        div .legend { @for entry in entries { span { (entry.swatch(0.0, 0.0)) (entry.text) } } }
    }
}

/// Returns file names for figures: their titles in lower case, with numbers where titles are equal.
pub fn file_names(figures: &[&Figure]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for figure in figures {
        let title = figure.title.to_ascii_lowercase();
        let words: Vec<&str> = title
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let base = words.join("-");

        let mut name = format!("{base}.svg");
        let mut number = 2;
        while names.contains(&name) {
            name = format!("{base}-{number}.svg");
            number += 1;
        }
        names.push(name);
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

/// A kind of operations, which are shown in one chart.
pub struct Kind {
    pub name: &'static str,
    /// The operations of this kind that were measured.
    pub operations: Vec<String>,
}

/// Returns the kinds of operations of some series, in the order of their first series.
pub fn kinds(series: &[RunSeries]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for one in series {
        let operation = &one.series.operation;
        let name = kind_of(operation);
        match kinds.iter_mut().find(|kind| kind.name == name) {
            Some(kind) if kind.operations.contains(operation) => {}
            Some(kind) => kind.operations.push(operation.clone()),
            None => kinds.push(Kind {
                name,
                operations: vec![operation.clone()],
            }),
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
    let class = |column| {
        if column >= numbers {
            Some("number")
        } else {
            None
        }
    };
    html! {
        div .wide {
            table {
                thead {
                    tr {
                        @for (column, text) in head.iter().enumerate() {
                            th class=[class(column)] { (text) }
                        }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            @for (column, text) in row.iter().enumerate() {
                                td class=[class(column)] { (text) }
                            }
                        }
                    }
                }
            }
        }
    }
}
