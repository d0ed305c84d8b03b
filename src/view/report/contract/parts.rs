//! Generic view of a report: figures, bar charts and tables.

use serde::Serialize;

/// Generic view.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewPart {
    /// Id in the page.
    pub id: &'static str,
    /// Name in the navigation.
    pub name: &'static str,
    /// Main statement, one sentence.
    pub headline: String,
    /// Introduction.
    pub lead: String,
    /// Figures.
    pub tiles: Vec<Tile>,
    /// Bar charts.
    pub charts: Vec<Bars>,
    /// Tables, possibly the tops of longer ones.
    pub tables: Vec<TablePreview>,
}

/// Figure with its label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tile {
    /// Figure as formatted text.
    pub figure: String,
    /// Label.
    pub what: String,
}

/// Bar chart of counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bars {
    /// Subject of the counts.
    pub heading: String,
    /// Question that the chart answers.
    pub ask: String,
    /// Bars, in display order.
    pub bars: Vec<LabeledCount>,
}

/// Table, possibly the top of a longer one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TablePreview {
    /// Subject of the rows.
    pub heading: String,
    /// Names of the columns.
    pub heads: Vec<&'static str>,
    /// Rows to display.
    pub rows: Vec<Vec<TableCell>>,
    /// Number of all rows.
    pub all: u64,
    /// Table of the result with all rows; empty if there is none.
    pub table: String,
}

/// Cell of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TableCell {
    /// Count.
    Count(u64),
    /// Number as formatted text.
    Number(String),
    /// Words, or crawled text.
    Text(String),
    /// Crawled URL.
    Url(String),
}

/// Count with its label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LabeledCount {
    /// Label of the count.
    pub what: String,
    /// Value of the count.
    pub count: u64,
}
