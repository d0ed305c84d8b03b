use std::collections::{BTreeMap, HashMap, HashSet};

use url::Url;

use super::*;

fn pages(url: &str) -> Vec<SynthPage> {
    let synth = Synth::parse(url).unwrap();
    synth.pages(0..synth.len()).collect()
}

fn html(page: &SynthPage) -> &str {
    std::str::from_utf8(&page.html).unwrap()
}

/// Returns the content of a page of a site between its heading and its footer.
fn article(page: &SynthPage) -> &str {
    html(page).split("</h1>").nth(1).unwrap().split("<div class=\"foot\"").next().unwrap()
}

fn hrefs(page: &SynthPage) -> Vec<String> {
    html(page).split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

fn links(page: &SynthPage) -> Vec<String> {
    let base = Url::parse(&page.url).unwrap();
    hrefs(page).iter().map(|href| base.join(href).unwrap().to_string()).collect()
}

fn host(url: &str) -> &str {
    url.split('/').nth(2).unwrap()
}

/// Returns the pages of a variant. Each comes with the primary page of which it is a copy, if the
/// newest version has it.
fn differs_from_primary<'a>(pages: &'a [SynthPage], variant: &str) -> Vec<(&'a SynthPage, Option<&'a SynthPage>)> {
    let primary: HashMap<_, _> =
        pages.iter().filter(|p| p.variant == "primary").map(|p| ((&p.target, &p.page), p)).collect();
    pages.iter().filter(|p| p.variant == variant).map(|p| (p, primary.get(&(&p.target, &p.page)).copied())).collect()
}

#[test]
fn a_page_is_the_same_alone_and_in_any_range() {
    let synth = Synth::parse("synth://?pages=700&seed=3").unwrap();
    let all_pages: Vec<SynthPage> = synth.pages(0..700).collect();
    for (number, page) in all_pages.iter().enumerate().rev() {
        assert_eq!(&synth.page(number as u64), page);
    }
    assert_eq!(synth.pages(333..444).collect::<Vec<_>>(), all_pages[333..444]);
}

#[test]
fn the_seed_decides_everything() {
    assert_eq!(pages("synth://?pages=300&seed=5"), pages("synth://?seed=5&pages=300"));
    let (first_seed, second_seed) = (pages("synth://?pages=300&seed=5"), pages("synth://?pages=300&seed=6"));
    let bodies: HashSet<_> = first_seed.iter().map(|page| &page.html).collect();
    let n_shared = second_seed.iter().filter(|page| bodies.contains(&page.html)).count();
    let n_plain = second_seed.iter().filter(|page| page.url.contains("/gone-") || page.url.contains("/blank-")).count();
    assert_eq!(n_shared, n_plain);
}

#[test]
fn truth_has_one_row_per_page_and_distinct_urls() {
    let synth = Synth::parse("synth://?pages=5000&seed=2").unwrap();
    let mut truth = Vec::new();
    synth.truth_tsv(&mut truth).unwrap();
    let truth = String::from_utf8(truth).unwrap();
    let mut rows = truth.lines();
    assert_eq!(rows.next(), Some("url\ttarget\tversion\tpage\tvariant"));
    let mut urls = HashSet::new();
    let mut count = 0;
    for (row, p) in rows.zip(synth.pages(0..synth.len())) {
        assert_eq!(row, [&p.url, &p.target, &p.version, &p.page, p.variant].join("\t"));
        assert_eq!(Url::parse(&p.url).unwrap().as_str(), p.url, "already canonical");
        assert!(urls.insert(p.url));
        count += 1;
    }
    assert_eq!(count, 5000);
}

#[test]
fn composition_equals_that_of_the_papers_experiment() {
    let pages = pages("synth://?pages=10000");
    let mut variants = BTreeMap::new();
    pages.iter().for_each(|page| *variants.entry(page.variant).or_insert(0) += 1);
    let copies: usize = variants.iter().filter(|(v, _)| !["single", "hub", "near"].contains(v)).map(|(_, n)| n).sum();
    assert!((6_000..7_500).contains(&copies), "{variants:?}");
    assert!(variants["single"] > 1_500 && variants["near"] == 300, "{variants:?}");
    assert_eq!(variants["hub"], pages.iter().map(|page| host(&page.url)).collect::<HashSet<_>>().len());
}

#[test]
fn copies_of_a_target_differ_in_version_or_host_and_pages_of_a_copy_in_name() {
    let pages = pages("synth://?pages=6000&seed=8");
    let mut seen_names = HashSet::new();
    let mut variants = HashMap::new();
    for p in pages.iter().filter(|p| !["single", "hub"].contains(&p.variant)) {
        assert!(seen_names.insert((&p.target, &p.version, host(&p.url), &p.page)), "{}", p.url);
        let known_variant = variants.entry((&p.target, &p.version, host(&p.url))).or_insert(p.variant);
        assert_eq!(*known_variant, p.variant, "a copy has one variant");
    }
}

#[test]
fn every_link_leads_to_a_page_of_the_crawl() {
    let pages = pages("synth://?pages=3000&seed=9");
    let urls: HashSet<&str> = pages.iter().map(|page| page.url.as_str()).collect();
    let mut count = 0;
    for page in &pages {
        for link in links(page) {
            assert!(urls.contains(link.as_str()), "{} links to {link}", page.url);
            count += 1;
        }
    }
    assert!(count > 20_000, "{count}");
}

#[test]
fn every_page_of_a_copy_is_reached_from_its_contents_by_links_inside_the_copy() {
    let pages = pages("synth://?pages=3000&seed=10");
    let pages_by_url: HashMap<&str, &SynthPage> = pages.iter().map(|page| (page.url.as_str(), page)).collect();
    let mut copies: HashMap<_, Vec<&SynthPage>> = HashMap::new();
    for p in pages.iter().filter(|p| !["single", "hub", "near"].contains(&p.variant)) {
        copies.entry((&p.target, &p.version, host(&p.url))).or_default().push(p);
    }
    for (copy, copy_pages) in copies {
        let mut reached_urls = HashSet::from([copy_pages[0].url.clone()]);
        let mut open = vec![copy_pages[0]];
        while let Some(page) = open.pop() {
            for link in links(page) {
                let target_page = pages_by_url[link.as_str()];
                if (&target_page.target, &target_page.version, host(&target_page.url)) == copy
                    && reached_urls.insert(link)
                {
                    open.push(target_page);
                }
            }
        }
        assert_eq!(reached_urls.len(), copy_pages.len(), "{copy:?}");
        assert_eq!(copy_pages[0].page, "contents.html");
    }
}

#[test]
fn an_exact_copy_has_the_primary_bytes() {
    let pages = pages("synth://?pages=2000");
    let pairs = differs_from_primary(&pages, "exact");
    assert!(!pairs.is_empty());
    assert!(pairs.iter().all(|(copy, primary)| copy.html == primary.unwrap().html && copy.url != primary.unwrap().url));
}

#[test]
fn a_renamed_copy_differs_in_the_suffix_of_names_only() {
    let pages = pages("synth://?pages=2000");
    let pairs = differs_from_primary(&pages, "renamed");
    assert!(!pairs.is_empty());
    for (copy, primary) in pairs {
        assert!(copy.url.ends_with(".htm"));
        assert_eq!(html(copy).replace(".htm\"", ".html\""), html(primary.unwrap()));
        assert_ne!(copy.html, primary.unwrap().html);
    }
}

#[test]
fn a_dressed_copy_has_all_primary_lines_and_a_bar_and_a_footer_more() {
    let pages = pages("synth://?pages=2000");
    let pairs = differs_from_primary(&pages, "dressed");
    assert!(!pairs.is_empty());
    for (copy, primary) in pairs {
        let added_lines: Vec<&str> = html(copy).lines().filter(|line| !html(primary.unwrap()).contains(line)).collect();
        assert_eq!(added_lines.len(), 2, "{added_lines:?}");
        assert!(added_lines[0].contains("<img") && added_lines[1].contains("times"));
        let primary_text: String =
            html(copy).lines().filter(|line| !added_lines.contains(line)).map(|line| format!("{line}\n")).collect();
        assert_eq!(primary_text, html(primary.unwrap()));
    }
}

#[test]
fn a_partial_copy_holds_part_of_the_pages_and_links_to_the_primary_site_for_the_rest() {
    let pages = pages("synth://?pages=4000");
    let mut sizes: HashMap<&str, (usize, usize)> = HashMap::new();
    for page in &pages {
        let size = sizes.entry(&page.target).or_default();
        size.0 += usize::from(page.variant == "primary");
        size.1 += usize::from(page.variant == "partial");
    }
    let partial: Vec<_> = sizes.values().filter(|size| size.1 > 0).collect();
    assert!(!partial.is_empty());
    for &&(n_pages, n_held) in &partial {
        assert!(n_held * 100 > n_pages * 25 && n_held * 100 <= n_pages * 80, "{n_held} of {n_pages}");
    }
    let n_away: usize = differs_from_primary(&pages, "partial")
        .iter()
        .map(|(copy, primary)| {
            let site = host(&primary.unwrap().url);
            links(copy).iter().filter(|link| host(link) == site).count()
        })
        .sum();
    assert!(n_away > partial.len());
}

#[test]
fn an_older_version_changes_some_lines_lacks_some_pages_and_has_others() {
    let pages = pages("synth://?pages=4000&seed=12");
    let pairs = differs_from_primary(&pages, "version");
    assert!(pairs.iter().any(|(_, primary)| primary.is_none()), "pages dropped since");
    let (mut n_kept, mut n_all, mut n_same) = (0, 0, 0);
    for (copy, primary) in pairs.iter().filter_map(|&(copy, primary)| Some((copy, primary?))) {
        assert_ne!(copy.version, primary.version);
        let lines: HashSet<&str> = html(primary).lines().collect();
        n_kept += html(copy).lines().filter(|line| lines.contains(line)).count();
        n_all += html(copy).lines().count();
        n_same += usize::from(copy.html == primary.html);
    }
    assert_eq!(n_same, 0, "the version banner differs on every page");
    assert!(n_kept * 100 > n_all * 70 && n_kept * 100 < n_all * 97, "{n_kept} of {n_all}");
    let size = |variant: &str| pages.iter().filter(|p| p.variant == variant && p.target == pages[0].target).count();
    assert!(size("version") % size("primary") != 0, "an older version has another number of pages");
    assert!(
        pages.iter().any(|p| p.variant == "version" && p.url.contains("/old/") && p.url.starts_with("http://www."))
    );
}

#[test]
fn near_copies_are_three_pages_on_three_sites_with_most_of_a_text_in_common() {
    let pages = pages("synth://?pages=2000");
    let mut groups: BTreeMap<&str, Vec<&SynthPage>> = BTreeMap::new();
    pages.iter().filter(|p| p.variant == "near").for_each(|p| groups.entry(&p.target).or_default().push(p));
    assert_eq!(groups.len(), 20);
    for group in groups.values() {
        assert_eq!(group.iter().map(|p| host(&p.url)).collect::<HashSet<_>>().len(), 3);
        assert!(group.iter().all(|p| p.page == group[0].page));
        let lines: Vec<HashSet<&str>> = group.iter().map(|p| article(p).lines().collect()).collect();
        assert!(lines[1..].iter().all(|with_more| lines[0].is_subset(with_more) && lines[0].len() < with_more.len()));
        assert_ne!(lines[1], lines[2]);
    }
}

#[test]
fn one_mirror_host_in_ten_is_linked_from_no_other_and_the_others_are() {
    let pages = pages("synth://?pages=12000&seed=1");
    let mirrors: HashSet<&str> = pages
        .iter()
        .filter(|p| p.variant == "hub")
        .map(|p| host(&p.url))
        .filter(|host| host.starts_with("mirror") || host.starts_with("ftp"))
        .collect();
    let mut linked_hosts = HashSet::new();
    for page in &pages {
        linked_hosts.extend(links(page).iter().map(|link| host(link).to_owned()).filter(|to| to != host(&page.url)));
    }
    let islands = mirrors.iter().filter(|host| !linked_hosts.contains(**host)).count();
    assert!(mirrors.len() >= 20);
    assert_eq!(islands, mirrors.len() / 10);
}

#[test]
fn not_found_pages_are_alike_and_empty_ones_have_no_text() {
    let pages = pages("synth://?pages=1000");
    let pages_with = |name: &str| pages.iter().filter(|p| p.url.contains(name)).collect::<Vec<_>>();
    let (gone_pages, blank) = (pages_with("/gone-"), pages_with("/blank-"));
    assert!(gone_pages.len() > 3 && blank.len() > 1);
    assert!(gone_pages.iter().all(|p| p.html == gone_pages[0].html && p.variant == "single"));
    assert!(blank.iter().all(|p| html(p).split('<').all(|tag| tag.split('>').nth(1).unwrap_or("").trim().is_empty())));
}

#[test]
fn pages_of_one_site_share_its_boilerplate_and_sites_share_none() {
    let pages = pages("synth://?pages=2000");
    let foot = |page: &SynthPage| html(page).split("class=\"foot\">").nth(1).unwrap().to_owned();
    let mut feet: HashMap<&str, HashSet<String>> = HashMap::new();
    let furnished =
        pages.iter().filter(|p| ["primary", "single", "near"].contains(&p.variant) && html(p).contains("\"foot\""));
    furnished.for_each(|p| {
        feet.entry(host(&p.url)).or_default().insert(foot(p));
    });
    assert!(feet.values().all(|of_host| of_host.len() == 1));
    assert_eq!(feet.values().flatten().collect::<HashSet<_>>().len(), feet.len());
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_one() {
    for (url, expected) in [
        ("synth://?page=10", "unknown key \"page\"; did you mean \"pages\"?"),
        ("synth://?pages=1000&sede=10", "did you mean \"seed\"?"),
        ("synth://?manual=10", "did you mean \"manuals\"?"),
        ("synth://?pages=ten", "pages is \"ten\", but must be a whole number"),
        ("synth://?pages", "pages is \"\", but must be a whole number"),
        ("synth://?seed=1&seed=2", "seed is given twice"),
        ("synth://host/?seed=1", "text between synth:// and ?"),
        ("http://?seed=1", "not a synthetic crawl"),
        ("synth://?pages=12", "pages is 12, but must be 100 to 4294967295"),
    ] {
        match Synth::parse(url).unwrap_err() {
            Error::Usage(message) => assert!(message.contains(expected), "{message}"),
            other => panic!("{other}"),
        }
    }
    assert_eq!(Synth::parse("synth://").unwrap().len(), 10_000);
    assert_eq!(Synth::parse("synth:///?pages=200&").unwrap().len(), 200);
}
