//! A part of the page under a heading of its own.

use maud::{Markup, html};

use super::figure::Figure;

/// A part of the page.
pub struct ReportSection {
    pub id: &'static str,
    pub title: &'static str,
    /// Its charts and tables.
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

    /// Less important text.
    pub fn note(text: &str) -> Self {
        Part::Text(html! { p .note { (text) } })
    }
}
