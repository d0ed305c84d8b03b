//! Pages of a single set or collection, with its members.

use std::cmp::Reverse;

use axum::extract::{Extension, Path};
use axum::http::Uri;
use serde::Deserialize;

use super::{HtmlReply, ROWS, begin_table, end_table, link_to_compare, titled, whole};
use crate::lookup::LookupIndex;
use crate::lookup::answer::id_of;
use crate::lookup::sets::{self, IndexedMember};
use crate::report::charts::bars::bar;
use crate::report::figures::{count, counted};
use crate::report::html::Html;
use crate::report::markup::{name, role};
use crate::serve::routes::{RouteQuery, id};
use webtwin_http::Problem;
use webtwin_http::answer::query;

#[derive(Deserialize)]
struct From {
    #[serde(default)]
    from: usize,
}

pub(in crate::serve) async fn one_set(
    Extension(snapshot): RouteQuery,
    Path(text): Path<String>,
    uri: Uri,
) -> HtmlReply {
    let From { from: start } = query(&uri)?;
    let page = sets::set(&snapshot.index, id(&text)?, start, ROWS)?;
    let set = page.ok_or_else(|| Problem::missing("no page of a trivial cluster has this id"))?;
    let mut html = Html::new();
    html.markup("<p class=lead>")
        .text(counted(set.pages as u64, "page", "pages"))
        .markup(" that are copies of each other.");
    html.markup(" Set <code>").text(&set.id).markup("</code></p>");
    let first = members(&mut html, &snapshot.index, &set.members)?;
    html.markup("<p>");
    super::link_rows(&mut html, "/set/", &set.id, start, set.pages);
    html.markup("</p>");
    Ok(whole(Some(&snapshot), "sets", first.as_deref().unwrap_or("Set"), &html))
}

pub(in crate::serve) async fn one_collection(
    Extension(snapshot): RouteQuery,
    Path(text): Path<String>,
    uri: Uri,
) -> HtmlReply {
    let From { from: first } = query(&uri)?;
    let page = sets::collection(&snapshot.index, id(&text)?, first, ROWS)?;
    let mut collection = page.ok_or_else(|| Problem::missing("no collection has this id"))?;
    // The kept copy first, then the largest; the index has mirrors in the order of their ids.
    collection.mirrors.sort_by_key(|mirror| (!mirror.keep, Reverse(mirror.size)));
    let mut html = Html::new();
    html.markup("<p class=lead>").text(counted(collection.own.size.into(), "page", "pages")).markup(", one of ");
    html.text(count(collection.cardinality.into()))
        .markup(" collections that are copies of each other. Collection <code>");
    html.text(&collection.own.id).markup("</code></p>");
    let heads = [("unseen", "role"), ("", "root page"), ("num", "pages"), ("wide-only", "of the largest")];
    begin_table(&mut html, "copies", &heads);
    let max_size = collection.mirrors.iter().map(|mirror| mirror.size).max().unwrap_or(0);
    for mirror in &collection.mirrors {
        html.markup(if mirror.keep {
            "<tr><td><span class=\"tag stay\">kept</span>"
        } else {
            "<tr><td><span class=tag>mirror</span>"
        });
        html.markup("</td><td class=url><a href=\"/collection/").text(&mirror.id);
        html.markup(if mirror.id == collection.own.id { "\" aria-current=true>" } else { "\">" });
        html.crawled(name(&mirror.title, &mirror.root.url)).markup("</a><div class=sub>");
        html.link(&mirror.root.url, &mirror.root.url).markup("</div></td><td class=num>");
        html.text(count(mirror.size.into())).markup("</td><td class=\"wide-only level\">");
        let class = if mirror.keep { "f-stay" } else { "f-collection" };
        bar(&mut html, &[(class, mirror.size.into())], max_size.into());
        html.markup("</td></tr>");
    }
    end_table(&mut html);
    // The answer lists a limited number of mirrors.
    let omitted = u64::from(collection.cardinality).saturating_sub(collection.mirrors.len() as u64);
    if omitted > 0 {
        html.markup("<p class=note>and ").text(counted(omitted, "more copy", "more copies")).markup("</p>");
    }
    html.markup("<h2 class=gap>Pages</h2>");
    members(&mut html, &snapshot.index, &collection.members)?;
    html.markup("<p>");
    super::link_rows(&mut html, "/collection/", &collection.own.id, first, collection.own.size as usize);
    html.markup("</p>");
    let title = name(&collection.own.title, &collection.own.root.url);
    Ok(whole(Some(&snapshot), "collections", title, &html))
}

/// Renders members, each next to the page kept for it. Returns the name of the first kept page.
fn members(html: &mut Html, index: &LookupIndex, members: &[IndexedMember]) -> Result<Option<String>, Problem> {
    let heads = [
        ("", "page"),
        ("", "role"),
        ("num wide-only", "differing bits of the simhash"),
        ("unseen", "next to the page that stays"),
    ];
    begin_table(html, "pages", &heads);
    let mut first = None;
    for member in members {
        let kept_member =
            member.keep.as_deref().and_then(id_of).map(|keep| kept_member(index, keep)).transpose()?.flatten();
        first = first.or_else(|| match &kept_member {
            Some(kept_member) => Some(name(&kept_member.title, &kept_member.url).to_string()),
            None => Some(name(&member.title, &member.url).to_string()),
        });
        html.markup("<tr><td class=url>");
        titled(html, &member.title, &member.url);
        html.markup("</td><td>");
        role(html, member.role.as_deref().unwrap_or(""));
        html.markup("</td><td class=\"num wide-only\">");
        let bits = |kept_member: &IndexedMember| {
            let [member_hash, kept_hash] =
                [&member.simhash, &kept_member.simhash].map(|simhash| simhash.as_deref().and_then(id_of));
            Some((member_hash? ^ kept_hash?).count_ones())
        };
        html.text(kept_member.as_ref().and_then(bits).map_or("–".into(), |bits| bits.to_string())).markup("</td><td>");
        if let Some(kept_member) = &kept_member {
            link_to_compare(html, &member.url, &kept_member.url);
        }
        html.markup("</td></tr>");
    }
    end_table(html);
    Ok(first)
}

fn kept_member(index: &LookupIndex, id: u64) -> Result<Option<IndexedMember>, Problem> {
    Ok(index.rank(id)?.map(|rank| IndexedMember::read(index, rank)).transpose()?)
}
