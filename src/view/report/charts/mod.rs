//! Charts as SVG: they work without scripts, can be printed, and have the same bytes every time.
//!
//! Each chart is a figure with a caption that states its main number, and with its data as a table.

pub mod bars;
pub mod graph;
pub mod histogram;
pub mod matrix;
pub mod scatter;
pub mod waterfall;

use super::html::Html;

/// Formats a coordinate, rounded to a tenth: invisible, and equal on all machines.
pub fn at(coordinate: f64) -> String {
    let tenths = (coordinate * 10.0).round() as i64;
    match (tenths / 10, (tenths % 10).abs()) {
        (units, 0) => units.to_string(),
        (0, tenth) if tenths < 0 => format!("-0.{tenth}"),
        (units, tenth) => format!("{units}.{tenth}"),
    }
}

/// Renders a figure: its caption, the chart, and its data as a table with the given headers.
pub fn figure(html: &mut Html, sentence: &str, chart: &Html, heads: &[&'static str], rows: &[Vec<String>]) {
    html.markup("<figure><figcaption>").text(sentence).markup("</figcaption>").piece(chart);
    html.markup(
        "<details class=data><summary>Data</summary><div class=\"scroll tall\" tabindex=0 role=group aria-label=Data>",
    );
    html.markup("<table class=small><thead><tr>");
    for (number, head) in heads.iter().enumerate() {
        html.markup(if number == 0 { "<th scope=col>" } else { "<th scope=col class=num>" }).text(head).markup("</th>");
    }
    html.markup("</tr></thead><tbody>");
    // HTML ends a cell or row where the next one starts, so no end tags are needed.
    for row in rows {
        for (number, cell) in row.iter().enumerate() {
            match number {
                0 => html.markup("<tr><th scope=row class=url>").text(cell),
                _ => html.markup("<td class=num>").text(cell),
            };
        }
    }
    html.markup("</tbody></table></div></details></figure>");
}

/// Renders a chart of the given size. It is hidden from screen readers, because the figure around
/// it has a caption.
pub fn chart(width: f64, height: f64, inside: &Html) -> Html {
    let mut html = Html::new();
    html.markup("<svg class=chart aria-hidden=true");
    html.attribute("viewBox", format_args!("0 0 {} {}", at(width), at(height)))
        .markup(">")
        .piece(inside)
        .markup("</svg>");
    html
}

/// Draws a rectangle.
pub fn rectangle(html: &mut Html, [x, y, width, height]: [f64; 4], class: &'static str) {
    html.markup("<rect rx=2").attribute("class", class).attribute("x", at(x)).attribute("y", at(y));
    html.attribute("width", at(width.max(0.0))).attribute("height", at(height.max(0.0))).markup("/>");
}

/// Draws a line.
pub fn line(html: &mut Html, [x1, y1, x2, y2]: [f64; 4], class: &'static str) {
    html.markup("<line").attribute("class", class).attribute("x1", at(x1)).attribute("y1", at(y1));
    html.attribute("x2", at(x2)).attribute("y2", at(y2)).markup("/>");
}

/// Draws a label.
pub fn label(html: &mut Html, [x, y]: [f64; 2], class: &'static str, text: &str) {
    html.markup("<text").attribute("class", class).attribute("x", at(x)).attribute("y", at(y)).markup(">");
    html.text(text).markup("</text>");
}

/// Shortens a label to at most `limit` characters.
pub fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.into(),
        Some(_) => text.chars().take(limit - 1).chain(['…']).collect(),
    }
}

/// Returns axis marks (powers of ten, and twice and five times these) that enclose the values from
/// `smallest` to `largest`.
pub fn log_marks(smallest: u64, largest: u64) -> Vec<u64> {
    let steps = (0..19).flat_map(|power| [1, 2, 5].map(|times| times * 10u64.pow(power)));
    let mut marks: Vec<u64> = steps.collect();
    let first = marks.iter().rposition(|mark| *mark <= smallest.max(1)).unwrap_or(0);
    let last = marks.iter().position(|mark| *mark >= largest.max(1) && *mark > marks[first]).unwrap_or(marks.len() - 1);
    marks.truncate(last + 1);
    marks.split_off(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_marks_enclose_the_values() {
        assert_eq!([1.0, 1.04, 1.25, -0.26, -12.0].map(at), ["1", "1", "1.3", "-0.3", "-12"]);
        assert_eq!(log_marks(7, 53), [5, 10, 20, 50, 100]);
        assert_eq!(log_marks(1, 1), [1, 2]);
        assert_eq!(log_marks(0, 0), [1, 2]);
        assert_eq!(log_marks(10, 10), [10, 20]);
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("abc", 4), "abc");
    }
}
