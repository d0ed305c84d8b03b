//! Histogram of pages by number of replicas, with two bars for each class.

use super::{chart, label, line, rectangle};
use crate::report::figures::part;
use crate::report::html::Html;

/// Draws two bars for each name. The counts are shown as fractions of `total`.
pub fn histogram(bars: &[(&str, [u64; 2])], classes: [&'static str; 2], total: u64, axis: &str) -> Html {
    let (left, top, floor, right) = (44.0, 18.0, 200.0, 456.0);
    let highest = bars.iter().flat_map(|bar| bar.1).map(|count| part(count, total)).fold(0.0, f64::max);
    let step = if highest > 0.5 {
        20
    } else if highest > 0.2 {
        10
    } else {
        5
    };
    let marks = ((100.0 * highest / f64::from(step)).ceil() as i32).max(1);
    let y = |share: f64| floor - (floor - top) * share * 100.0 / f64::from(marks * step);
    let mut html = Html::new();
    for mark in 0..=marks {
        let height = y(f64::from(mark * step) / 100.0);
        line(&mut html, [left, height, right, height], if mark == 0 { "axis" } else { "grid" });
        label(&mut html, [left - 7.0, height + 4.0], "sub end", &format!("{} %", mark * step));
    }
    let width = (right - left) / bars.len().max(1) as f64;
    for (number, (name, counts)) in bars.iter().enumerate() {
        let middle = left + width * (number as f64 + 0.5);
        for (side, (&count, class)) in counts.iter().zip(classes).enumerate() {
            let (x, share) = (middle + 18.0 * (side as f64 - 1.0), part(count, total));
            if count > 0 {
                rectangle(&mut html, [x, y(share).min(floor - 1.5), 16.0, floor - y(share).min(floor - 1.5)], class);
                let percent = (100.0 * share).round();
                let value = if percent < 1.0 { "<1".into() } else { format!("{percent}") };
                label(&mut html, [x + 8.0, y(share) - 4.0], "sub mid", &value);
            }
        }
        label(&mut html, [middle, floor + 16.0], "mid", name);
    }
    label(&mut html, [(left + right) / 2.0, floor + 34.0], "sub mid", axis);
    chart(460.0, 240.0, &html)
}
