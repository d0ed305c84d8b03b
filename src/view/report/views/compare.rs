//! View of pairs of pages side by side, with the reason why they are together or apart.

use super::heading;
use crate::report::contract::{
    DiffRow, DiffWords, PageComparison, ReportedMeasure, ResultReport, SetMember, SharedTexts,
};
use crate::report::figures::{count, counted};
use crate::report::html::Html;
use crate::report::markup::{alike, name, role, tile};

pub(super) fn write(html: &mut Html, report: &ResultReport) {
    let pairs = &report.compare.shown;
    let lead = match pairs.len() {
        0 => "There is no pair to show: no pages are similar, or the report was made with --pairs 0.",
        _ => {
            "Explains why two pages are in one set. The pairs are ends of the weakest links, where false pairs \
              are most likely, and pages of the largest mirrors. To compare two others, run: webtwin explain RUN URL URL."
        }
    };
    heading(html, "compare", "Two pages side by side", lead);
    html.markup("<div>");
    for (number, pair) in pairs.iter().enumerate() {
        item(html, number, pair);
    }
    html.markup("</div>");
}

fn item(html: &mut Html, number: usize, pair: &PageComparison) {
    html.markup("<details class=\"card item\" id=\"pair-").text(number + 1).markup(if number == 0 {
        "\" open>"
    } else {
        "\">"
    });
    html.markup("<summary><span class=what><span>").crawled(name(&pair.pages[0].title, &pair.pages[0].url));
    html.markup("</span><span class=sub>").crawled(&pair.pages[0].host).text(" and ").crawled(&pair.pages[1].host);
    html.markup("</span></span><span class=tag>").text(&pair.why).markup("</span></summary><div class=inside>");
    let direct = pair.chain.first().filter(|_| pair.chain.len() == 1);
    let counted_chunks =
        direct.filter(|step| step.by.measure == ReportedMeasure::Overlap).map(|step| u64::from(step.by.value));
    self::pair(html, pair, &verdict(pair), counted_chunks);
    html.markup("</div></details>");
}

/// Renders two pages side by side below a verdict. `counted_chunks` is the number of common chunks
/// that count.
pub fn pair(html: &mut Html, pair: &PageComparison, verdict: &str, counted_chunks: Option<u64>) {
    html.markup(if pair.together {
        "<p class=verdict><b>Together.</b> "
    } else {
        "<p class=\"verdict apart\"><b>Apart.</b> "
    });
    html.text(verdict).markup("</p><div class=sides data-mark=pair>");
    for (letter, page) in ["A", "B"].into_iter().zip(&pair.pages) {
        side(html, letter, page);
    }
    html.markup("</div><div class=\"tiles four\">");
    tile(html, if pair.same_text { "yes" } else { "no" }, "same text");
    if let Some(shared_texts) = &pair.shared {
        let [a, b] = shared_texts.of.map(count);
        tile(html, &count(shared_texts.both), &format!("chunks on both, of {a} and {b}, including boilerplate"));
    }
    tile(html, &counted_chunks.map_or("–".into(), count), "of these counted by the run for this pair");
    tile(html, &pair.bits.map_or("–".into(), |bits| bits.to_string()), "differing bits of the simhashes");
    html.markup("</div>");
    chain(html, pair);
    if !pair.unread.is_empty() {
        html.markup("<p class=\"note warn\">The texts could not be read again from the input: ")
            .crawled(&pair.unread)
            .markup("</p>");
    }
    if !pair.same_text && pair.unread.is_empty() {
        html.markup("<h2 class=gap>Side by side</h2>");
        diff(html, &pair.diff);
    }
    if let Some(shared_texts) = pair.shared.as_ref().filter(|shared| !shared.some.is_empty()) {
        chunks(html, shared_texts);
    }
}

/// Explains why two pages are in one set by the pairs that connect them, or states that they are in
/// none.
pub fn verdict(pair: &PageComparison) -> String {
    match pair.chain.len() {
        _ if !pair.together => "They are not in one set, or their set was not examined.".into(),
        0 => "They are in one set; the chain of pairs between them is too long to show.".into(),
        1 => format!("They are a pair: {}.", alike(pair.chain[0].by)),
        steps => {
            let weakest = pair.chain.iter().filter(|step| step.by.measure != ReportedMeasure::Exact).count();
            format!(
                "{steps} pairs join them, one after the other; {} equal text.",
                match (steps - weakest, steps) {
                    (0, _) => "none has".into(),
                    (equal, all) if equal == all => "all have".into(),
                    (equal, _) => counted(equal as u64, "has", "have"),
                }
            )
        }
    }
}

fn side(html: &mut Html, letter: &'static str, page: &SetMember) {
    html.markup("<div class=\"card side\"><span class=letter>").markup(letter).markup("</span><div><div class=url>");
    html.link(&page.url, &page.url).markup("</div><p class=note>");
    role(html, &page.role);
    html.text(format_args!(
        " {} of text, {}",
        counted(page.text_bytes, "byte", "bytes"),
        counted(page.chunks, "chunk", "chunks")
    ));
    html.markup("</p></div></div>");
}

fn chain(html: &mut Html, pair: &PageComparison) {
    if pair.chain.len() < 2 {
        return;
    }
    html.markup("<h2 class=gap>The chain that joins them</h2><ol class=chain><li><span class=page>")
        .crawled(&pair.pages[0].host)
        .markup("</span></li>");
    for step in &pair.chain {
        html.markup(match step.by.measure {
            ReportedMeasure::Exact => "<li><span class=\"link exact\">",
            _ => "<li><span class=link>",
        });
        html.text(alike(step.by)).markup("</span><span class=page>");
        html.crawled(if step.host.is_empty() { "another page" } else { &step.host }).markup("</span></li>");
    }
    html.markup("</ol>");
}

/// Renders two texts side by side.
pub(super) fn diff(html: &mut Html, rows: &[DiffRow]) {
    html.markup("<div class=diff tabindex=0 role=group aria-label=\"the two texts\"><table><thead class=unseen><tr><th scope=col>A</th><th scope=col>B</th></tr></thead><tbody>");
    for row in rows {
        match row {
            DiffRow::Same(line) => {
                // A table cell isolates the direction of its text.
                html.markup("<tr><td>").text(line).markup("<td>").text(line);
            }
            DiffRow::Equal(lines) => {
                html.markup("<tr><td class=equal colspan=2>")
                    .text(counted(*lines, "equal line", "equal lines"))
                    .markup("</td></tr>");
            }
            DiffRow::More(lines) => {
                html.markup("<tr><td class=equal colspan=2>").text(counted(*lines, "more line is", "more lines are"));
                html.markup(" not shown</td></tr>");
            }
            DiffRow::Changed { left, right } => {
                html.markup("<tr>");
                write_changed(html, left.as_deref(), ["<td class=gone>", "<del>", "</del>"]);
                write_changed(html, right.as_deref(), ["<td class=new>", "<ins>", "</ins>"]);
                html.markup("</tr>");
            }
        }
    }
    html.markup("</tbody></table></div>");
}

fn write_changed(html: &mut Html, words: Option<&[DiffWords]>, [cell, begin, end]: [&'static str; 3]) {
    let Some(words) = words else {
        html.markup("<td class=absent></td>");
        return;
    };
    html.markup(cell);
    for word in words {
        match word.changed {
            true => html.markup(begin).text(&word.text).markup(end),
            false => html.text(&word.text),
        };
    }
    html.markup("</td>");
}

fn chunks(html: &mut Html, shared_texts: &SharedTexts) {
    let has_counts = shared_texts.some.iter().any(|chunk| chunk.pages.is_some());
    html.markup("<details class=data><summary>").text(format_args!(
        "{} of {} chunks on both",
        shared_texts.some.len(),
        count(shared_texts.both)
    ));
    html.markup("</summary><div class=scroll tabindex=0 role=group aria-label=chunks><table class=small><thead><tr><th scope=col>chunk</th>");
    html.markup(if has_counts {
        "<th scope=col class=num>on pages</th></tr></thead><tbody>"
    } else {
        "</tr></thead><tbody>"
    });
    for chunk in &shared_texts.some {
        html.markup("<tr><td class=url>").crawled(&chunk.text).markup("</td>");
        if has_counts {
            html.markup("<td class=num>").text(chunk.pages.map_or("–".into(), count)).markup("</td>");
        }
        html.markup("</tr>");
    }
    html.markup("</tbody></table></div></details>");
}
