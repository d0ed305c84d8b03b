//! Bars: parts of a whole, bars in tables, and the copies of a mirror as a strip.

use super::{at, rectangle};
use crate::report::figures::{part, share};
use crate::report::html::Html;

/// Draws a bar of the parts of a whole, labelled with their fractions where the part is wide
/// enough. The bar has the width of the page in per cent, so that labels keep their size.
pub fn stack(html: &mut Html, parts: &[(&'static str, u64)]) {
    let total: u64 = parts.iter().map(|part| part.1).sum();
    html.markup("<svg width=\"100%\" height=34 aria-hidden=true>");
    let mut start = 0.0;
    for &(class, count) in parts.iter().filter(|part| part.1 > 0) {
        let width = 100.0 * part(count, total);
        html.markup("<rect height=34 stroke=\"var(--card)\" stroke-width=2").attribute("class", class);
        html.attribute("x", format_args!("{}%", at(start)))
            .attribute("width", format_args!("{}%", at(width)))
            .markup("/>");
        if width >= 12.0 {
            html.markup("<text class=on y=22 dx=9").attribute("x", format_args!("{}%", at(start))).markup(">");
            html.text(share(count, total)).markup("</text>");
        }
        start += width;
    }
    html.markup("</svg>");
}

/// Draws a bar of a table. Widths are relative to the longest bar of the table.
pub fn bar(html: &mut Html, parts: &[(&'static str, u64)], longest: u64) {
    html.markup("<svg class=bar aria-hidden=true>");
    let mut start = 0.0;
    for &(class, count) in parts.iter().filter(|part| part.1 > 0) {
        let width = 100.0 * part(count, longest);
        html.markup("<rect height=12").attribute("class", class).attribute("x", format_args!("{}%", at(start)));
        html.attribute("width", format_args!("{}%", at(width.max(0.5)))).markup("/>");
        start += width;
    }
    html.markup("</svg>");
}

/// Draws the pages of each copy of a mirror as adjacent bars. The kept copy has the colour of kept
/// pages.
pub fn strip(html: &mut Html, copies: &[(bool, u64)]) {
    let max_pages = copies.iter().map(|copy| copy.1).max().unwrap_or(0);
    let width = 9.0 * copies.len() as f64;
    html.markup("<svg class=strip aria-hidden=true").attribute("width", at(width));
    html.attribute("viewBox", format_args!("0 0 {} 26", at(width))).markup(">");
    for (number, &(keep, pages)) in copies.iter().enumerate() {
        let height = (26.0 * part(pages, max_pages)).max(2.0);
        rectangle(
            html,
            [9.0 * number as f64, 26.0 - height, 7.0, height],
            if keep { "f-stay" } else { "f-collection" },
        );
    }
    html.markup("</svg>");
}

/// Draws a spot of a colour for a legend.
pub fn spot(html: &mut Html, class: &'static str) {
    html.markup("<svg viewBox=\"0 0 12 12\" aria-hidden=true><rect width=12 height=12 rx=3").attribute("class", class);
    html.markup("/></svg>");
}
