//! View of hosts: the hosts that share pages, and the pages of each that may be skipped.

use super::{filter, heading, write_cut_note};
use crate::report::charts::bars::{bar, spot};
use crate::report::charts::{figure, graph, matrix};
use crate::report::contract::{HostPair, HostReport, ResultReport};
use crate::report::figures::{bytes, count, counted, share};
use crate::report::html::Html;

pub(super) fn write(html: &mut Html, report: &ResultReport) {
    let hosts = &report.hosts;
    let pairs = |kind: &str| hosts.pairs.get(kind).copied().unwrap_or(0);
    let lead = format!(
        "{}. {} mirrors (nearly all pages of one are on the other), {} some pages, {} one server with two names.",
        counted(hosts.all, "host", "hosts"),
        counted(pairs("mirror"), "pair of hosts is", "pairs of hosts are"),
        if pairs("part") == 1 { "1 pair shares".into() } else { format!("{} share", count(pairs("part"))) },
        if pairs("alias") == 1 { "1 is".into() } else { format!("{} are", count(pairs("alias"))) },
    );
    heading(html, "hosts", "Hosts", &lead);
    if hosts.matrix_hosts.len() > 1 {
        write_shared(html, hosts);
    }
    table(html, hosts);
    pair_table(html, hosts);
}

fn write_shared(html: &mut Html, report: &HostReport) {
    let rows: Vec<Vec<String>> = report.matrix.iter().map(cells).collect();
    let heads = ["host", "other host", "shared", "share of its pages", "share of the other's pages", "kind"];
    let max_shared = report.matrix.iter().max_by_key(|pair| pair.shared);
    let sentence = max_shared.map_or_else(String::new, |pair| {
        format!("{} and {} share the most, {}", pair.a, pair.b, counted(pair.shared, "page", "pages"))
    });
    html.markup(
        "<div class=pair><div class=card><h2>Hosts with the same pages</h2><p class=ask>Per cent of the row's pages ",
    );
    html.markup("with a copy on the column's host. Frame: mirror; dashed frame: alias. (SGM98, Server Map)</p><div class=chart-wide tabindex=0 role=group aria-label=Matrix>");
    figure(html, &sentence, &matrix::matrix(&report.matrix_hosts, &report.matrix), &heads, &rows);
    html.markup("</div></div><div class=card><h2>Pairs of these hosts</h2><p class=ask>The width of a curve is the number of pages that ");
    html.markup("two hosts share. Orange: mirror; dashed: alias; grey: part.</p><div class=chart-wide tabindex=0 role=group aria-label=Graph>");
    let sentence = format!(
        "{} between {}",
        counted(report.matrix.len() as u64, "pair", "pairs"),
        counted(report.matrix_hosts.len() as u64, "host", "hosts")
    );
    let rows: Vec<Vec<String>> = report.matrix_hosts.iter().map(|host| degree(host, &report.matrix)).collect();
    figure(
        html,
        &sentence,
        &graph::hosts(&report.matrix_hosts, &report.matrix),
        &["host", "shares with", "maximum of shared pages"],
        &rows,
    );
    html.markup("</div></div></div>");
}

fn cells(pair: &HostPair) -> Vec<String> {
    let HostPair { a, b, shared, pages_a, pages_b, kind, .. } = pair;
    vec![a.clone(), b.clone(), count(*shared), share(*shared, *pages_a), share(*shared, *pages_b), kind.clone()]
}

fn degree(host: &str, pairs: &[HostPair]) -> Vec<String> {
    let pairs_of_host = || pairs.iter().filter(|pair| pair.a == host || pair.b == host);
    let max_shared = pairs_of_host().map(|pair| pair.shared).max().unwrap_or(0);
    vec![host.into(), count(pairs_of_host().count() as u64), count(max_shared)]
}

fn table(html: &mut Html, report: &HostReport) {
    let longest = report.shown.iter().map(|host| host.crawl.pages).max().unwrap_or(0);
    html.markup("<div class=card><h2>Pages to skip, by host</h2><ul class=legend><li>");
    spot(html, "f-stay");
    html.markup("stays</li><li>");
    spot(html, "f-collection");
    html.markup("may be skipped</li></ul><p></p>");
    filter(html, "host-table", "Filter hosts");
    html.markup("<div class=\"scroll tall\" tabindex=0 role=group aria-label=\"table of hosts\"><table id=host-table data-sort><thead><tr>");
    html.markup("<th scope=col>host</th><th scope=col class=num>pages</th><th scope=col class=num aria-sort=descending>may be skipped</th>");
    html.markup("<th scope=col class=wide-only data-plain><span class=unseen>parts</span></th><th scope=col class=num>saves</th></tr></thead>");
    for host in &report.shown {
        html.markup("<tbody><tr><td class=url>")
            .crawled(&host.host)
            .markup("<td class=num>")
            .text(count(host.crawl.pages));
        html.markup("<td class=num>").text(count(host.skip.pages)).markup("<td class=\"wide-only level\">");
        let stay = host.crawl.pages.saturating_sub(host.skip.pages);
        bar(html, &[("f-stay", stay), ("f-collection", host.skip.pages)], longest);
        html.markup("<td class=num").attribute("data-value", host.skip.bytes).markup(">").text(bytes(host.skip.bytes));
        html.markup("</tbody>");
    }
    html.markup("</table></div>");
    write_cut_note(html, report.shown.len(), report.all, "hosts", "hosts");
    html.markup("</div>");
}

fn pair_table(html: &mut Html, report: &HostReport) {
    if report.shown_pairs.is_empty() {
        return;
    }
    html.markup("<p></p><div class=card><h2>Pairs of hosts that share the most</h2><div class=\"scroll tall\" tabindex=0 role=group ");
    html.markup("aria-label=\"pairs of hosts\"><table data-sort id=pair-table><thead><tr><th scope=col>host</th><th scope=col>other host</th>");
    html.markup("<th scope=col class=num aria-sort=descending>pages shared</th><th scope=col class=\"num wide-only\">of its pages</th>");
    html.markup("<th scope=col class=\"num wide-only\">of the other's</th><th scope=col class=\"num wide-only\">same path</th><th scope=col>kind</th></tr></thead>");
    for pair in &report.shown_pairs {
        html.markup("<tbody><tr><td class=url>").crawled(&pair.a).markup("<td class=url>").crawled(&pair.b);
        html.markup("<td class=num>").text(count(pair.shared)).markup("<td class=\"num wide-only\">");
        html.text(share(pair.shared, pair.pages_a))
            .markup("<td class=\"num wide-only\">")
            .text(share(pair.shared, pair.pages_b));
        html.markup("<td class=\"num wide-only\">").text(count(pair.same_path)).markup("<td>").text(&pair.kind);
        html.markup("</tbody>");
    }
    html.markup("</table></div>");
    write_cut_note(html, report.shown_pairs.len(), report.pairs.values().sum(), "pairs", "server_pairs");
    html.markup("</div>");
}
