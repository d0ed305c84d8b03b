//! Waterfall chart from all pages to those that are kept.

use super::{chart, label, line, rectangle};
use crate::report::figures::{count, part};
use crate::report::html::Html;

/// Step of the chart: label in two lines, class, and number of pages removed.
pub struct WaterfallStep {
    /// First line of the label.
    pub words: &'static str,
    /// Second line of the label.
    pub more: &'static str,
    /// Class of the bar.
    pub class: &'static str,
    /// Number of pages removed.
    pub pages: u64,
}

/// Draws all pages, the steps, and the remaining pages.
pub fn waterfall(total: u64, steps: &[WaterfallStep]) -> Html {
    let (top, floor, width) = (24.0, 210.0, 460.0 / (steps.len() + 2) as f64);
    let y = |pages: u64| floor - (floor - top) * part(pages, total);
    let mut html = Html::new();
    line(&mut html, [0.0, floor, 460.0, floor], "axis");
    let bar = |html: &mut Html, number: usize, class, start: u64, end: u64| {
        let x = width * number as f64;
        rectangle(html, [x + 10.0, y(start), width - 20.0, (y(end) - y(start)).max(1.5)], class);
    };
    let words = |html: &mut Html, number: usize, value: &str, above: u64, words, details| {
        let middle = width * (number as f64 + 0.5);
        label(html, [middle, y(above) - 7.0], "value mid", value);
        label(html, [middle, floor + 17.0], "mid", words);
        label(html, [middle, floor + 31.0], "sub mid", details);
    };
    bar(&mut html, 0, "f-total", total, 0);
    words(&mut html, 0, &count(total), total, "crawled", "");
    let mut remaining = total;
    for (number, step) in (1..).zip(steps) {
        let next = remaining.saturating_sub(step.pages);
        let x = width * number as f64;
        line(&mut html, [x - 10.0, y(remaining), x + 10.0, y(remaining)], "lead-line");
        bar(&mut html, number, step.class, remaining, next);
        words(&mut html, number, &format!("−{}", count(step.pages)), remaining, step.words, step.more);
        remaining = next;
    }
    let last = steps.len() + 1;
    let x = width * last as f64;
    line(&mut html, [x - 10.0, y(remaining), x + 10.0, y(remaining)], "lead-line");
    bar(&mut html, last, "f-stay", remaining, 0);
    words(&mut html, last, &count(remaining), remaining, "stay", "to be fetched");
    chart(460.0, 246.0, &html)
}
