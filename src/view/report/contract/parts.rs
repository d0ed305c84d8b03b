//! A view in plain parts: figures, counts as bars, and tables.

use serde::Serialize;

/// A view in plain parts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// Its id in the page.
    pub id: &'static str,
    /// Its name among the views.
    pub name: &'static str,
    /// What it says in one sentence.
    pub headline: String,
    /// What it is about.
    pub lead: String,
    /// Figures.
    pub tiles: Vec<Tile>,
    /// Counts as bars.
    pub charts: Vec<Bars>,
    /// Tables, or the tops of longer ones.
    pub tables: Vec<Rows>,
}

/// A figure and what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tile {
    /// The figure, as it is shown.
    pub figure: String,
    /// What it is.
    pub what: String,
}

/// Counts as bars.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bars {
    /// What is counted.
    pub heading: String,
    /// The question that it answers.
    pub ask: String,
    /// The bars, in the order in which they are shown.
    pub bars: Vec<Count>,
}

/// A table, or the top of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rows {
    /// What its rows are.
    pub heading: String,
    /// Names of the columns.
    pub heads: Vec<&'static str>,
    /// The rows that are shown.
    pub rows: Vec<Vec<Cell>>,
    /// How many there are in all.
    pub all: u64,
    /// The table of the result that has all of them; empty for none.
    pub table: String,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A count.
    Count(u64),
    /// A figure, as it is shown.
    Number(String),
    /// Words, or a name that was crawled.
    Text(String),
    /// A URL that was crawled.
    Url(String),
}

/// A count and what it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Count {
    /// What is counted, in words.
    pub what: String,
    /// How many.
    pub count: u64,
}
