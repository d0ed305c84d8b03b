//! View of mirrors: a row for each original, with its copies.

use super::{filter, heading, write_cut_note};
use crate::report::charts::bars::{bar, strip};
use crate::report::contract::{MirrorGroup, ResultReport};
use crate::report::figures::{bytes, count, counted, share};
use crate::report::html::Html;
use crate::report::markup::name;

pub(super) fn write(html: &mut Html, report: &ResultReport) {
    let mirrors = &report.mirrors;
    let lead = match mirrors.all {
        0 => "No collection of this crawl has a mirror.".to_string(),
        total => format!(
            "{}. Each row is an original with its mirrors. Its bars show the pages of each copy; the first one, \
             in green, is kept. A short bar is a partial mirror.",
            counted(total, "collection has mirrors", "collections have mirrors")
        ),
    };
    heading(html, "mirrors", "Mirrored collections", &lead);
    if mirrors.shown.is_empty() {
        return;
    }
    filter(html, "mirror-table", "Filter by title, host or path");
    html.markup("<div class=\"card scroll\" tabindex=0 role=group aria-label=\"table of mirrors\"><table id=mirror-table data-sort>");
    html.markup("<thead><tr><th scope=col>original</th><th scope=col class=num>copies</th><th scope=col class=\"num wide-only\">hosts</th>");
    html.markup("<th scope=col class=num>pages</th><th scope=col class=wide-only data-plain>each copy</th>");
    html.markup("<th scope=col class=num aria-sort=descending>may be skipped</th><th scope=col class=\"num wide-only\">bytes</th>");
    html.markup("<th scope=col class=\"num wide-only\">text that is kept</th></tr></thead>");
    mirrors.shown.iter().for_each(|mirror| row(html, mirror));
    html.markup("</table></div>");
    write_cut_note(html, mirrors.shown.len(), mirrors.all, "originals", "collections");
}

fn row(html: &mut Html, mirror: &MirrorGroup) {
    html.markup("<tbody id=\"mirror-")
        .text(mirror.id)
        .markup("\"><tr><td><b>")
        .crawled(name(&mirror.title, &mirror.url));
    html.markup("</b>");
    if !mirror.language.is_empty() {
        html.markup(" <span class=tag>").text(&mirror.language).markup("</span>");
    }
    html.markup("<div class=sub>").link(&mirror.url, &mirror.url).markup("</div></td><td class=num>");
    html.text(count(mirror.copies)).markup("</td><td class=\"num wide-only\">").text(count(mirror.hosts));
    html.markup("</td><td class=num>").text(count(mirror.largest)).markup("</td><td class=\"wide-only level\">");
    strip(html, &mirror.shown.iter().map(|copy| (copy.keep, copy.size)).collect::<Vec<_>>());
    html.markup("</td>");
    match mirror.skip {
        Some(skip) => {
            html.markup("<td class=num>").text(count(skip.pages)).markup("</td><td class=\"num wide-only\"");
            html.attribute("data-value", skip.bytes).markup(">").text(bytes(skip.bytes)).markup("</td>");
        }
        // There were too many pages to examine: unknown, not 0.
        None => _ = html.markup("<td class=num>–</td><td class=\"num wide-only\">–</td>"),
    }
    html.markup("<td class=\"num wide-only\"");
    match mirror.contained {
        Some(thousandths) => {
            html.attribute("data-value", u64::from(thousandths)).markup(">").text(share(thousandths.into(), 1000));
        }
        None => _ = html.markup(">–"),
    }
    html.markup("</td></tr><tr class=unfold><td colspan=8><details><summary>");
    html.text(counted(mirror.copies, "copy", "copies"))
        .markup("</summary><div class=scroll><table class=small data-mark=pages><thead><tr>");
    html.markup("<th scope=col><span class=unseen>role</span></th><th scope=col>root page</th><th scope=col class=num>pages</th>");
    // Some results lack the column.
    let has_links = mirror.shown.iter().any(|copy| copy.links_from_elsewhere.is_some());
    if has_links {
        html.markup("<th scope=col class=num>links from other hosts</th>");
    }
    html.markup("<th scope=col class=wide-only>of the largest</th></tr></thead><tbody>");
    for copy in &mirror.shown {
        html.markup(if copy.keep {
            "<tr><td><span class=\"tag stay\">kept</span></td>"
        } else {
            "<tr><td><span class=tag>mirror</span></td>"
        });
        html.markup("<td class=url>").link(&copy.url, &copy.url);
        // The prefix is omitted if it is the folder of the root page, as it often is.
        if copy.url.rfind('/').is_none_or(|slash| copy.url[..=slash] != copy.prefix) {
            html.markup("<div class=sub>all below ").crawled(&copy.prefix).markup("</div>");
        }
        html.markup("</td><td class=num>").text(count(copy.size)).markup("</td>");
        if has_links {
            html.markup("<td class=num>").text(copy.links_from_elsewhere.map_or("–".into(), count)).markup("</td>");
        }
        html.markup("<td class=\"wide-only level\">");
        bar(html, &[(if copy.keep { "f-stay" } else { "f-collection" }, copy.size)], mirror.largest);
        html.markup("</td></tr>");
    }
    html.markup("</tbody></table></div>");
    if (mirror.shown.len() as u64) < mirror.copies {
        html.markup("<p class=note>and ").text(counted(
            mirror.copies - mirror.shown.len() as u64,
            "smaller copy",
            "smaller copies",
        ));
        html.markup("</p>");
    }
    html.markup("</details></td></tr></tbody>");
}
