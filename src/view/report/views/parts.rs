//! Generic view: a headline, figures, bar charts and the tops of tables.

use super::{counts, write_cut_note};
use crate::report::contract::{TableCell, TablePreview, ViewPart};
use crate::report::figures::count;
use crate::report::html::Html;
use crate::report::markup::tile;

pub(super) fn write(html: &mut Html, part: &ViewPart) {
    html.markup("<h1 class=headline id=\"").markup(part.id).markup("-head\">").text(&part.headline);
    html.markup("</h1><p class=lead>").text(&part.lead).markup("</p><div class=tiles>");
    for tile_row in &part.tiles {
        tile(html, &tile_row.figure, &tile_row.what);
    }
    html.markup("</div><div class=pair>");
    for chart in &part.charts {
        html.markup("<div class=card><h2>")
            .text(&chart.heading)
            .markup("</h2><p class=ask>")
            .text(&chart.ask)
            .markup("</p>");
        match chart.bars.is_empty() {
            true => _ = html.markup("<p class=note>none</p>"),
            false => counts(html, &chart.bars, "f-collection", &chart.heading),
        }
        html.markup("</div>");
    }
    html.markup("</div>");
    part.tables.iter().for_each(|of| table(html, of));
}

fn table(html: &mut Html, table: &TablePreview) {
    html.markup("<h2 class=gap>").text(&table.heading).markup("</h2>");
    html.markup("<div class=\"card scroll\" tabindex=0 role=group").attribute("aria-label", &table.heading);
    html.markup("><table class=small><thead><tr>");
    for (number, head) in table.heads.iter().enumerate() {
        let is_number =
            matches!(table.rows.first().map(|row| &row[number]), Some(TableCell::Count(_) | TableCell::Number(_)));
        html.markup(if is_number { "<th scope=col class=num>" } else { "<th scope=col>" }).text(head).markup("</th>");
    }
    html.markup("</tr></thead><tbody>");
    for row in &table.rows {
        html.markup("<tr>");
        for cell in row {
            match cell {
                TableCell::Count(number) => html.markup("<td class=num>").text(count(*number)),
                TableCell::Number(number) => html.markup("<td class=num>").text(number),
                TableCell::Text(text) => html.markup("<td class=url>").crawled(text),
                TableCell::Url(url) => html.markup("<td class=url>").link(url, url),
            };
            html.markup("</td>");
        }
        html.markup("</tr>");
    }
    html.markup("</tbody></table></div>");
    if !table.table.is_empty() {
        write_cut_note(html, table.rows.len(), table.all, "rows", &table.table);
    }
}
