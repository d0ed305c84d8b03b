//! Matrix of hosts: the fraction of the row's pages that are also on the column's host.

use std::collections::HashMap;

use super::{at, chart, label, rectangle, shortened};
use crate::report::contract::HostPair;
use crate::report::html::Html;

/// Side of a cell.
const CELL: f64 = 26.0;

/// Returns the cells by host and other host: percentage of the host's pages, and the pair.
pub fn cells(pairs: &[HostPair]) -> HashMap<(&str, &str), (u64, &HostPair)> {
    let mut cells = HashMap::new();
    for pair in pairs {
        let percent = |pages: u64| (200 * pair.shared + pages) / (2 * pages.max(1));
        cells.insert((pair.a.as_str(), pair.b.as_str()), (percent(pair.pages_a), pair));
        cells.insert((pair.b.as_str(), pair.a.as_str()), (percent(pair.pages_b), pair));
    }
    cells
}

/// Draws the matrix, with hosts in the given order.
pub fn matrix(hosts: &[String], pairs: &[HostPair]) -> Html {
    let cells = cells(pairs);
    let names: Vec<String> = hosts.iter().map(|host| shortened(host, 24)).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64;
    let (left, top) = (16.0 + 6.6 * longest, 16.0 + 5.4 * longest);
    let side = CELL * hosts.len() as f64;
    let mut html = Html::new();
    rectangle(&mut html, [left, top, side, side], "f-none");
    for (row, host) in hosts.iter().enumerate() {
        let (x, y) = (left + CELL * row as f64, top + CELL * row as f64);
        label(&mut html, [left - 7.0, y + 17.0], "end", &names[row]);
        html.markup("<text")
            .attribute("transform", format_args!("translate({} {}) rotate(-55)", at(x + 15.0), at(top - 7.0)));
        html.markup(">").text(&names[row]).markup("</text>");
        for (column, other_host) in hosts.iter().enumerate() {
            let x = left + CELL * column as f64;
            if row == column {
                rectangle(&mut html, [x + 1.0, y + 1.0, CELL - 2.0, CELL - 2.0], "f-line");
            }
            let Some((percent, pair)) = cells.get(&(host.as_str(), other_host.as_str())) else { continue };
            // The classes are narrower at the top, where mirrors are distinguished from parts.
            let class = match percent {
                0..20 => "h1",
                20..40 => "h2",
                40..60 => "h3",
                60..80 => "h4",
                80..95 => "h5",
                _ => "h6",
            };
            rectangle(&mut html, [x + 1.0, y + 1.0, CELL - 2.0, CELL - 2.0], class);
            label(
                &mut html,
                [x + CELL / 2.0, y + 17.0],
                if *percent >= 60 { "mid hot" } else { "mid" },
                &percent.to_string(),
            );
            match pair.kind.as_str() {
                "mirror" => rectangle(&mut html, [x + 2.0, y + 2.0, CELL - 4.0, CELL - 4.0], "frame"),
                "alias" => rectangle(&mut html, [x + 2.0, y + 2.0, CELL - 4.0, CELL - 4.0], "frame alias"),
                _ => {}
            }
        }
    }
    // The names of the last columns extend beyond the right edge.
    chart(left + side + 3.9 * longest, top + side + 4.0, &html)
}
