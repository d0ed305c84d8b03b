//! Names and HTML of synthetic pages.

use std::fmt::Write;

use super::outline::{ManualOutline, View};
use super::plan::{CopyKind, HostRole, ManualCopy, PlannedPage};
use super::random::{Stream, key};
use super::text::TopicWriter;
use super::warc::date;
use super::{Opened, Synth};

/// Maximum number of links from a hub to other hosts.
const HUB_LINKS: u64 = 200;

impl Synth {
    /// Returns the bytes of page `number`.
    pub(super) fn html(&self, number: u64, open_copy: &mut Option<Opened>) -> String {
        let seed = self.plan.seed;
        match self.plan.place(number) {
            PlannedPage::Copy { copy, number: position } => {
                let Opened { view, .. } = self.open(copy, open_copy);
                self.manual_page(&self.plan.copies[copy as usize], view, view.held()[position as usize], number)
            }
            PlannedPage::Single { host, number: position } => {
                let text = key(seed, &[30, u64::from(host), position]);
                self.site_page(host, (self.site_key(host), text), |html, writer| {
                    writer.text(html, text, 0);
                    let mut stream = Stream::new(key(text, &[1]));
                    let n_singles = self.plan.singles_on(host);
                    html.push_str("<p>");
                    // The first link leads to the next page, so that all pages of the host are
                    // reachable.
                    for single_number in [(position + 1) % n_singles, stream.below(n_singles), stream.below(n_singles)]
                    {
                        let _ = writeln!(
                            html,
                            "<a href=\"/{}\">{}</a>",
                            self.single_path(host, single_number),
                            self.language.name(stream.draw())
                        );
                    }
                    if stream.chance(20) {
                        self.link_to_primary(html, stream.below(u64::from(self.plan.manuals())) as u32);
                    }
                    html.push_str("</p>\n");
                })
            }
            PlannedPage::Near { group, number: near_number } => {
                let text = key(seed, &[31, group]);
                self.site_page(self.near_host(group, near_number), (text, text), |html, writer| {
                    writer.text(html, text, 0);
                    if near_number > 0 {
                        writer.paragraph(html, key(text, &[near_number]), 1, 0);
                    }
                })
            }
            PlannedPage::NotFound(_) => {
                "<html><head><title>404 Not Found</title></head><body>\n<h1>Not Found</h1>\n<p>The requested \
                                   page was not found on this server.</p>\n</body></html>\n"
                    .to_owned()
            }
            PlannedPage::Empty(_) => "<html><head></head><body></body></html>\n".to_owned(),
            PlannedPage::Hub(host) => self.hub(host),
        }
    }

    fn manual_page(&self, copy: &ManualCopy, view: &View, page: u32, number: u64) -> String {
        let outline = view.outline;
        let writer = self.language.about(outline.key, outline.page_key(page));
        let dressed = copy.kind == CopyKind::Dressed;
        let name = self.manual_title(copy.manual);
        let version = self.version(copy.manual, copy.age);
        let mut html = String::with_capacity(8 << 10);
        head(&mut html, &format!("{} - {name} {version}", self.title(outline, page)));
        if dressed {
            let host = self.host_name(copy.host);
            let _ = write!(
                html,
                "<div class=\"bar\"><img src=\"/images/{host}.gif\" alt=\"{host}\"> \
                 <a href=\"/\">All mirrors at {host}</a> ",
            );
            self.link_to_primary(&mut html, copy.manual);
            html.push_str("</div>\n");
        }

        let _ = write!(html, "<div class=\"nav\">\n<p>{name}</p>\n<ul>\n<li>");
        self.link(&mut html, copy, view, page, 0);
        html.push_str("</li>\n");
        for chapter in view.children(0) {
            html.push_str("<li>");
            self.link(&mut html, copy, view, page, chapter);
            html.push_str("</li>\n");
        }
        html.push_str("</ul>\n</div>\n");
        // Pages of different versions differ at least in this line, even if their texts are equal.
        let _ = writeln!(html, "<p class=\"version\">{name}, version {version}</p>");
        let steps = [
            ("Previous", view.before(page)),
            ("Up", (page > 0).then(|| outline.parent(page))),
            ("Next", view.after(page)),
        ];
        html.push_str("<p class=\"steps\">\n");
        for (word, target) in steps {
            if let Some(target) = target {
                let _ = write!(html, "{word}: ");
                self.link(&mut html, copy, view, page, target);
                html.push('\n');
            }
        }
        html.push_str("</p>\n");

        let _ = writeln!(html, "<h1>{}</h1>", self.title(outline, page));
        writer.text(&mut html, outline.page_key(page), copy.age);
        self.links(&mut html, "ol", copy, view, page, &mut view.children(page));
        self.links(&mut html, "ul", copy, view, page, &mut view.see_also(page));

        html.push_str("<div class=\"foot\">\n");
        self.language.about(outline.key, outline.key).paragraph(&mut html, outline.key, 2, 0);
        let _ = writeln!(
            html,
            "<p>Comments on {name} are welcome at docs@{}.</p>\n</div>",
            self.host_name(HostRole::Primary(copy.manual))
        );
        if dressed {
            // A counter makes every dressed copy different, as on real mirrors.
            let visits = Stream::new(key(self.plan.seed, &[32, number])).below(1_000_000);
            let _ = writeln!(
                html,
                "<div class=\"mirror\">This page was read {visits} times. Mirrored on {}.</div>",
                &date(1_600_000_000 + 86_400 * i64::from(copy.manual % 1000))[..10]
            );
        }
        html.push_str("</body>\n</html>\n");
        html
    }

    /// Appends a list of links under a heading. Appends nothing if there are no links.
    fn links(
        &self,
        html: &mut String,
        list: &str,
        copy: &ManualCopy,
        view: &View,
        page: u32,
        targets: &mut dyn Iterator<Item = u32>,
    ) {
        let mut later_targets = targets.peekable();
        if later_targets.peek().is_none() {
            return;
        }
        let _ = writeln!(html, "<{list}>");
        for target in later_targets {
            html.push_str("<li>");
            self.link(html, copy, view, page, target);
            html.push_str("</li>\n");
        }
        let _ = writeln!(html, "</{list}>");
    }

    /// Appends a link from one page of a copy to another page of its version. The link is relative,
    /// or leads to the primary site if the copy lacks the page.
    fn link(&self, html: &mut String, copy: &ManualCopy, view: &View, page: u32, target: u32) {
        html.push_str("<a href=\"");
        if !view.holds(target) {
            html.push_str(&self.base(&self.plan.copies_of(copy.manual)[0]));
        } else if view.outline.is_section(page) {
            html.push_str("../");
        }
        let _ =
            write!(html, "{}\">{}</a>", self.file(view.outline, target, copy.kind), self.title(view.outline, target));
    }

    fn link_to_primary(&self, html: &mut String, manual: u32) {
        self.link_to_copy(html, &self.plan.copies_of(manual)[0], &self.manual_title(manual));
    }

    fn link_to_copy(&self, html: &mut String, copy: &ManualCopy, text: &str) {
        let file = self.file(self.plan.outline(copy.manual), 0, copy.kind);
        let _ = write!(html, "<a href=\"{}{file}\">{text}</a>", self.base(copy));
    }

    fn site_key(&self, host: u32) -> u64 {
        key(self.plan.seed, &[33, u64::from(host)])
    }

    /// Makes a page of an unrelated site. The content is a text about a topic; menu and footer are
    /// those of the site.
    fn site_page(
        &self,
        host: u32,
        (topic, text): (u64, u64),
        content: impl FnOnce(&mut String, TopicWriter<'_>),
    ) -> String {
        let site = self.site_key(host);
        let (menu, writer) = (self.language.about(site, site), self.language.about(topic, text));
        let mut html = String::with_capacity(6 << 10);
        let mut title = String::new();
        writer.title(&mut title, text);
        head(&mut html, &title);
        html.push_str("<div class=\"menu\">\n<a href=\"/\">Home</a>\n<ul>\n");
        for entry in 0..5 {
            html.push_str("<li>");
            menu.title(&mut html, key(site, &[entry]));
            html.push_str("</li>\n");
        }
        let _ = writeln!(html, "</ul>\n</div>\n<h1>{title}</h1>");
        content(&mut html, writer);
        html.push_str("<div class=\"foot\">\n");
        menu.paragraph(&mut html, site, 1, 0);
        html.push_str("</div>\n</body>\n</html>\n");
        html
    }

    /// Makes the home page of a host: a text, links to its collections, and links to other hosts.
    fn hub(&self, host: HostRole) -> String {
        let name = self.host_name(host);
        let stream_key = Stream::new(key(self.plan.seed, &[34])).draw() ^ xxhash_rust::xxh3::xxh3_64(name.as_bytes());
        let mut stream = Stream::new(stream_key);
        let mut html = String::with_capacity(4 << 10);
        head(&mut html, &name);
        let _ = writeln!(html, "<h1>{name}</h1>");
        self.language.about(stream_key, stream_key).paragraph(&mut html, stream_key, 4, 0);
        html.push_str("<ul>\n");
        let item = |html: &mut String, copy: &ManualCopy| {
            html.push_str("<li>");
            let title = format!("{} {}", self.manual_title(copy.manual), self.version(copy.manual, copy.age));
            self.link_to_copy(html, copy, &title);
            html.push_str("</li>\n");
        };
        match host {
            // The site of a manual also lists its mirrors, except those without links from
            // elsewhere.
            HostRole::Primary(manual) => {
                let linked_copies = self.plan.copies_of(manual).iter().filter(|copy| self.plan.is_linked(copy.host));
                linked_copies.for_each(|copy| item(&mut html, copy));
            }
            HostRole::Mirror(mirror) => self.plan.carried_by(mirror).for_each(|copy| item(&mut html, copy)),
            HostRole::Single(single_host) => {
                for number in 0..self.plan.singles_on(single_host) {
                    let _ = writeln!(html, "<li><a href=\"/{0}\">{0}</a></li>", self.single_path(single_host, number));
                }
            }
        }
        html.push_str("</ul>\n<ul>\n");
        for _ in 0..stream.below(7) {
            html.push_str("<li>");
            self.link_to_primary(&mut html, stream.below(u64::from(self.plan.manuals())) as u32);
            html.push_str("</li>\n");
        }
        // The reciprocal of a uniform draw has the heavy tail of degrees on the web. The skewed
        // draw makes a few hosts well known.
        for _ in 0..(100 / (1 + stream.below(100))).min(HUB_LINKS) {
            let target_host = self.plan.host(stream.skewed(self.plan.hosts()));
            if target_host != host && self.plan.is_linked(target_host) {
                let _ = writeln!(html, "<li><a href=\"http://{0}/\">{0}</a></li>", self.host_name(target_host));
            }
        }
        html.push_str("</ul>\n</body>\n</html>\n");
        html
    }

    /// Returns the path of a page below the base of its copy.
    pub(super) fn file(&self, outline: ManualOutline, page: u32, kind: CopyKind) -> String {
        let stem = |page: u32| format!("{}-{page}", self.language.name(outline.page_key(page)));
        let suffix = if kind == CopyKind::Renamed { "htm" } else { "html" };
        match page {
            0 => format!("contents.{suffix}"),
            _ if outline.is_section(page) => format!("{}/{}.{suffix}", stem(outline.parent(page)), stem(page)),
            _ => format!("{}.{suffix}", stem(page)),
        }
    }

    fn title(&self, outline: ManualOutline, page: u32) -> String {
        let mut title = String::new();
        self.language.about(outline.key, outline.page_key(page)).title(&mut title, outline.page_key(page));
        title
    }

    fn manual_title(&self, manual: u32) -> String {
        let key = self.plan.outline(manual).key;
        let mut title = String::new();
        self.language.about(key, key).title(&mut title, key);
        title + " Manual"
    }

    /// Returns the name of a manual, which is used for its host, its directories and its target.
    pub(super) fn manual_name(&self, manual: u32) -> String {
        format!("{}{manual}", self.language.name(self.plan.outline(manual).key))
    }

    /// Returns the name of a version. Each step of age is one minor version less.
    pub(super) fn version(&self, manual: u32, age: u32) -> String {
        let mut stream = Stream::new(key(self.plan.outline(manual).key, &[35]));
        let newest = self.plan.copies_a_manual + stream.below(10) as u32;
        format!("{}.{}", 1 + stream.below(6), newest - age)
    }

    /// Returns the URL below which the pages of a copy are, with a slash at the end.
    pub(super) fn base(&self, copy: &ManualCopy) -> String {
        let host = self.host_name(copy.host);
        let manual = self.manual_name(copy.manual);
        match copy.host {
            HostRole::Mirror(mirror) => {
                let folder = ["pub", "doc", "mirrors", "manuals/html"]
                    [Stream::new(key(self.plan.seed, &[36, u64::from(mirror)])).below(4) as usize];
                format!("http://{host}/{folder}/{manual}/")
            }
            _ if copy.kind == CopyKind::Primary => format!("http://{host}/"),
            _ => format!("http://{host}/old/{}/", self.version(copy.manual, copy.age)),
        }
    }

    /// Returns the DNS name of a host.
    pub(super) fn host_name(&self, host: HostRole) -> String {
        match host {
            HostRole::Primary(manual) => format!("www.{}.example", self.manual_name(manual)),
            HostRole::Mirror(mirror) if mirror % 3 == 2 => format!("ftp{mirror:02}.campus.example"),
            HostRole::Mirror(mirror) => format!("mirror{mirror:02}.example"),
            HostRole::Single(single_host) => {
                let name = self.language.name(key(self.plan.seed, &[37, u64::from(single_host)]));
                format!("{name}{single_host}.site.example")
            }
        }
    }

    /// Returns the path of a single page on its host, without the first slash.
    pub(super) fn single_path(&self, host: u32, number: u64) -> String {
        let key = key(self.plan.seed, &[38, u64::from(host), number]);
        let (folder, name) = (self.language.name(key), self.language.name(key ^ 1));
        if key.is_multiple_of(3) { format!("{name}-{number}.html") } else { format!("{folder}/{name}-{number}.html") }
    }

    /// Returns a host of single pages that is drawn by a key.
    pub(super) fn any_single_host(&self, key: u64) -> HostRole {
        HostRole::Single(Stream::new(key).below(u64::from(self.plan.single_hosts)) as u32)
    }

    /// Returns the host of a near-copy. The pages of a group are on different hosts.
    fn near_host(&self, group: u64, number: u64) -> u32 {
        let hosts = u64::from(self.plan.single_hosts);
        ((Stream::new(key(self.plan.seed, &[39, group])).below(hosts) + number) % hosts) as u32
    }

    /// Returns the URL of a near-copy.
    pub(super) fn near_url(&self, group: u64, number: u64) -> String {
        let host = self.host_name(HostRole::Single(self.near_host(group, number)));
        format!("http://{host}/{}/note-{group}.html", self.language.name(key(self.plan.seed, &[40, group, number])))
    }
}

fn head(html: &mut String, title: &str) {
    let _ = write!(
        html,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>{title}</title>\n</head>\n<body>\n"
    );
}
