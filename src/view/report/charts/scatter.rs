//! Scatter plot of mirrors: number of copies against pages of the largest copy. The area of a
//! circle is the number of pages that may be skipped.

use super::{at, label, line, log_marks, shortened};
use crate::report::figures::{count, part};
use crate::report::html::Html;

/// Number of pages below which a mirror is mostly chance.
const NOISE: u64 = 10;

/// Maximum number of circles with a name.
const MAX_NAMED: usize = 7;

/// Mirror in the plot.
pub struct Spot<'m> {
    /// Target of its link: `mirror-ID`.
    pub id: u64,
    /// Name of the mirror.
    pub name: &'m str,
    /// Number of copies.
    pub copies: u64,
    /// Number of pages of the largest copy.
    pub pages: u64,
    /// Number of pages of the copies that are not kept.
    pub surplus: u64,
}

/// Draws the mirrors. `spots` has those with the largest surplus first.
pub fn scatter(spots: &[Spot<'_>]) -> Html {
    // Names are to the right of the plot.
    let (left, top, right, floor) = (48.0, 12.0, 316.0, 232.0);
    let ends = |value: fn(&Spot<'_>) -> u64| {
        let values = || spots.iter().map(value);
        log_marks(values().min().unwrap_or(1), values().max().unwrap_or(1))
    };
    let (x_ends, y_ends) = (ends(|spot| spot.copies), ends(|spot| spot.pages));
    let place = |marks: &[u64], value: u64| {
        let log = |value: u64| (value.max(1) as f64).ln();
        (log(value) - log(marks[0])) / (log(marks[marks.len() - 1]) - log(marks[0]))
    };
    // Leaves space around the outermost circles.
    let x = |value: u64| left + 22.0 + (right - left - 44.0) * place(&x_ends, value);
    let y = |value: u64| floor - 14.0 - (floor - top - 34.0) * place(&y_ends, value);

    let mut html = Html::new();
    // The group has a label, so that its links have a context for screen readers.
    html.markup("<svg class=chart role=group aria-label=\"circles of mirrors\" viewBox=\"0 0 460 280\">");
    if y_ends[0] < NOISE {
        let noise_top = if y_ends[y_ends.len() - 1] > NOISE { y(NOISE) } else { top };
        super::rectangle(&mut html, [left, noise_top, right - left, floor - noise_top], "f-none");
        label(&mut html, [right - 6.0, floor - 6.0], "sub end", "fewer than 10 pages: mostly chance");
    }
    for &mark in &y_ends {
        line(&mut html, [left, y(mark), right, y(mark)], "grid");
        label(&mut html, [left - 6.0, y(mark) + 4.0], "sub end", &count(mark));
    }
    for &mark in &x_ends {
        line(&mut html, [x(mark), top, x(mark), floor], "grid");
        label(&mut html, [x(mark), floor + 15.0], "sub mid", &count(mark));
    }
    label(&mut html, [(left + right) / 2.0, floor + 34.0], "sub mid", "copies (cardinality, logarithmic)");
    html.markup("<text class=\"sub mid\" transform=\"translate(10 122) rotate(-90)\">pages of the largest copy (logarithmic)</text>");

    let max_surplus = spots.iter().map(|spot| spot.surplus).max().unwrap_or(1);
    let mut names: Vec<(f64, usize)> =
        spots.iter().take(MAX_NAMED).enumerate().map(|(n, spot)| (y(spot.pages), n)).collect();
    names.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    // Places the names below each other, at least one line apart, and none below the floor.
    let mut lowest = f64::MIN;
    for name in &mut names {
        name.0 = name.0.max(lowest + 14.0).max(top + 8.0);
        lowest = name.0;
    }
    let mut highest = floor - 2.0;
    for name in names.iter_mut().rev() {
        name.0 = name.0.min(highest);
        highest = name.0 - 14.0;
    }
    for spot in spots.iter().take(400) {
        let radius = 3.0 + 15.0 * part(spot.surplus, max_surplus).sqrt();
        html.markup("<a href=\"#mirror-").text(spot.id).markup("\"");
        html.attribute(
            "aria-label",
            format_args!("{}: {} copies of up to {} pages", spot.name, count(spot.copies), count(spot.pages)),
        );
        html.markup("><circle class=dot").attribute("cx", at(x(spot.copies))).attribute("cy", at(y(spot.pages)));
        html.attribute("r", at(radius)).markup("><title>").text(spot.name).text(": ").text(count(spot.copies));
        html.text(" copies of up to ").text(count(spot.pages)).text(" pages").markup("</title></circle></a>");
    }
    for (height, number) in names {
        let spot = &spots[number];
        let (cx, cy) = (x(spot.copies), y(spot.pages));
        line(&mut html, [cx + 4.0, cy, right + 10.0, height - 4.0], "lead-line");
        label(&mut html, [right + 13.0, height], "", &shortened(spot.name, 21));
    }
    html.markup("</svg>");
    html
}
