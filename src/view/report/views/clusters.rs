//! View of the largest clusters of duplicates in a corpus, with the least similar record of each
//! next to the kept one.

use super::{filter, heading, write_cut_note};
use crate::report::contract::{Duplicate, ReportedCluster, ReportedClusters, ReportedRecord};
use crate::report::figures::{count, counted};
use crate::report::html::Html;

pub(super) fn write(html: &mut Html, clusters: &ReportedClusters) {
    let lead = match clusters.all {
        0 => "No record is a duplicate of another.".to_string(),
        total => format!(
            "{}, the largest first. The record that stays is shown next to the least similar one, where a \
             false duplicate is most likely. To compare two others, run: webtwin explain CORPUS RECORD RECORD.",
            counted(total, "cluster", "clusters")
        ),
    };
    heading(html, "clusters", "Clusters of duplicates", &lead);
    if clusters.shown.is_empty() {
        return;
    }
    filter(html, "cluster-list", "Filter by id or file");
    html.markup("<div id=cluster-list>");
    for (number, cluster) in clusters.shown.iter().enumerate() {
        item(html, number, cluster);
    }
    html.markup("</div>");
    write_cut_note(html, clusters.shown.len(), clusters.all, "clusters", "removed");
}

fn item(html: &mut Html, number: usize, cluster: &ReportedCluster) {
    let kept_record = &cluster.kept;
    html.markup("<details class=\"card item\" id=\"cluster-").text(number + 1);
    html.markup(if number == 0 { "\" open>" } else { "\">" });
    html.markup("<summary><span class=size>").text(count(cluster.removed));
    html.markup("<span class=unseen> duplicates of </span></span><span class=what><span>").crawled(&kept_record.id);
    html.markup("</span><span class=sub>")
        .crawled(&kept_record.file)
        .text(format_args!(", row {}", count(kept_record.row)));
    html.markup("</span></span>");
    match cluster.members.first() {
        Some(least_similar) if least_similar.why != "exact" => {
            html.markup("<span class=\"tag similar\">").text(similarity_text(least_similar)).markup("</span>")
        }
        _ => html.markup("<span class=\"tag exact\">same text</span>"),
    };
    html.markup("</summary><div class=inside><p class=ask>").text(sentence(cluster)).markup("</p>");
    members(html, cluster);
    if !cluster.unread.is_empty() {
        html.markup("<p class=\"note warn\">The texts could not be read again from the corpus: ");
        html.crawled(&cluster.unread).markup("</p>");
    }
    if let (false, Some(least_similar)) = (cluster.diff.is_empty(), cluster.members.first()) {
        html.markup("<h2 class=gap>Side by side</h2><div class=sides>");
        side(html, "A", kept_record, "stays");
        side(html, "B", &least_similar.record, &similarity_text(least_similar));
        html.markup("</div>");
        super::compare::diff(html, &cluster.diff);
    }
    html.markup("</div></details>");
}

fn sentence(cluster: &ReportedCluster) -> String {
    let words =
        [("exact", "with the same text"), ("near", "with a similar text"), ("against", "that the older corpus has")];
    let reason_text = |(why, words): (&str, &str)| {
        let records = cluster.removed_by.get(why)?;
        Some(format!("{} {words}", counted(*records, "record", "records")))
    };
    let reasons: Vec<String> = words.into_iter().filter_map(reason_text).collect();
    format!("Duplicates of this record: {}.", reasons.join(", "))
}

fn similarity_text(duplicate: &Duplicate) -> String {
    match duplicate.similarity {
        // Such texts differ only in properties that shingles ignore: case, spaces, forms of
        // characters.
        1.0 if duplicate.why != "exact" => "same shingles".into(),
        _ if duplicate.why == "exact" => "same text".into(),
        similarity => format!("{:.1} % similar", similarity * 100.0),
    }
}

fn members(html: &mut Html, cluster: &ReportedCluster) {
    html.markup("<div class=scroll tabindex=0 role=group aria-label=records><table class=small><thead><tr>");
    html.markup(
        "<th scope=col>duplicate</th><th scope=col>file</th><th scope=col class=num>row</th><th scope=col>why</th>",
    );
    html.markup("</tr></thead><tbody>");
    for duplicate in &cluster.members {
        html.markup("<tr><td class=url>")
            .crawled(&duplicate.record.id)
            .markup("</td><td class=url>")
            .crawled(&duplicate.record.file);
        html.markup("</td><td class=num>")
            .text(count(duplicate.record.row))
            .markup("</td><td>")
            .text(similarity_text(duplicate))
            .markup("</td></tr>");
    }
    html.markup("</tbody></table></div>");
    let omitted = cluster.removed.saturating_sub(cluster.members.len() as u64);
    if omitted > 0 {
        html.markup("<p class=note>").text(counted(omitted, "more duplicate is", "more duplicates are"));
        html.markup(" not shown.</p>");
    }
}

fn side(html: &mut Html, letter: &'static str, record: &ReportedRecord, caption: &str) {
    html.markup("<div class=\"card side\"><span class=letter>").markup(letter).markup("</span><div><div class=url>");
    html.crawled(&record.id).markup("</div><p class=note>").text(caption).text(" · ").crawled(&record.file);
    html.text(format_args!(", row {}", count(record.row))).markup("</p></div></div>");
}
