//! HTML pages: overview, mirrors, sets, a single URL, and two pages side by side. They share the
//! layout of the report and its components ([`crate::report::markup`]).
//!
//! All crawled text passes through [`Html`], which escapes it. The content security policy allows a
//! single stylesheet, the server's own, and no scripts; pages are complete without scripts.

pub(super) mod compare;
pub(super) mod lists;
pub(super) mod page;
pub(super) mod sets;

use axum::body::Body;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::http::{HeaderValue, Response};
use axum::response::IntoResponse;
use url::form_urlencoded::Serializer;

use super::current::Served;
use crate::report::html::{Html, STYLE};
use crate::report::markup::{head, name, top};
use webtwin_base::error::Error;
use webtwin_http::Problem;
use webtwin_http::answer::plain;

/// Content security policy of all pages.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);

/// Default number of rows on a page.
const ROWS: usize = 100;

/// Navigation: path and name of each view.
const VIEWS: &[(&str, &str)] = &[
    ("", "Overview"),
    ("collections", "Mirrors"),
    ("sets", "Sets"),
    ("page", "Look up"),
    ("compare", "Compare"),
    #[cfg(feature = "search")]
    ("search", "Search"),
];

/// Response of a page handler.
pub(super) type HtmlReply = Result<Response<Body>, ProblemPage>;

/// Problem that is shown as an HTML page.
pub(super) struct ProblemPage(Problem);

impl From<Problem> for ProblemPage {
    fn from(problem: Problem) -> ProblemPage {
        ProblemPage(problem)
    }
}

impl From<Error> for ProblemPage {
    fn from(error: Error) -> ProblemPage {
        ProblemPage(error.into())
    }
}

impl IntoResponse for ProblemPage {
    fn into_response(self) -> Response<Body> {
        let mut html = Html::new();
        html.markup("<p class=\"verdict apart\">").crawled(&self.0.detail).markup("</p>");
        let mut response = whole(None, "?", self.0.title(), &html);
        *response.status_mut() = self.0.status;
        response
    }
}

/// Renders a complete page around its content, within a view.
pub(super) fn whole(snapshot: Option<&Served>, view: &str, title: &str, content: &Html) -> Response<Body> {
    let (mut html, mut body, mut header) = (Html::new(), Html::new(), Html::new());
    body.markup("<link rel=stylesheet href=\"/style.css\">");
    if let Some(snapshot) = snapshot {
        let run = &snapshot.index.about.run;
        header.markup("<div class=where>").crawled(&run.url).markup(" · job ");
        header.text(&run.digest[..run.digest.len().min(12)]).markup("</div>");
    }
    head(&mut html, format_args!("{title} - webtwin"), &body);
    top(&mut html, &header, "/", VIEWS, Some(view));
    html.markup("<main id=main><h1>").crawled(title).markup("</h1>");
    html.piece(content).markup("</main></body></html>\n");
    let mut response = plain("text/html; charset=utf-8", html.finish());
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
    response
}

pub(super) async fn style() -> Response<Body> {
    plain("text/css; charset=utf-8", STYLE)
}

/// Starts a link to a path of the server, with a query string.
fn begin_link(html: &mut Html, path: &'static str, query: &[(&str, &str)]) {
    let query = Serializer::new(String::new()).extend_pairs(query).finish();
    html.markup("<a href=\"").markup(path).text(query).markup("\">");
}

/// Renders a link to the look-up page of a URL.
pub(super) fn to_page(html: &mut Html, url: &str) {
    begin_link(html, "/page?", &[("url", url)]);
    html.crawled(url).markup("</a>");
}

/// Renders a page's title, or else its URL, as a link to its look-up page, with the URL below.
fn titled(html: &mut Html, title: &str, url: &str) {
    begin_link(html, "/page?", &[("url", url)]);
    html.crawled(name(title, url)).markup("</a><div class=sub>").link(url, url).markup("</div>");
}

fn link_to_compare(html: &mut Html, a: &str, b: &str) {
    begin_link(html, "/compare?", &[("a", a), ("b", b)]);
    html.markup("compare</a>");
}

/// Starts a form.
fn begin_form(html: &mut Html, path: &'static str) {
    html.markup("<form class=tools action=\"").markup(path).markup("\">");
}

/// Renders a field of a form.
pub(super) fn field(html: &mut Html, name: &'static str, words: &'static str, value: &str) {
    html.markup("<input type=search name=").markup(name).markup(" aria-label=\"").markup(words);
    html.markup("\" placeholder=\"").markup(words).markup("\"").attribute("value", value).markup(">");
}

/// Renders the button of a form, and ends the form.
pub(super) fn end_form(html: &mut Html, words: &'static str) {
    html.markup("<button class=chip>").markup(words).markup("</button></form>");
}

/// Starts a table that may be wider than the page. Each header has a class and a text; headers of
/// class `unseen` are for screen readers only.
fn begin_table(html: &mut Html, label: &'static str, heads: &[(&'static str, &'static str)]) {
    html.markup("<div class=\"card scroll\" tabindex=0 role=group aria-label=\"").markup(label);
    html.markup("\"><table><thead><tr>");
    for (class, words) in heads {
        html.markup("<th scope=col");
        match *class {
            "unseen" => html.markup("><span class=unseen>").markup(words).markup("</span>"),
            class => html.attribute("class", class).markup(">").markup(words),
        };
        html.markup("</th>");
    }
    html.markup("</tr></thead><tbody>");
}

/// Ends a table.
fn end_table(html: &mut Html) {
    html.markup("</tbody></table></div>");
}

/// Renders links to the previous and the next rows.
fn link_rows(html: &mut Html, path: &'static str, id: &str, first: usize, total: usize) {
    let mut link = |first: usize, words: &'static str| {
        html.markup("<a href=\"").markup(path).text(id).markup("?from=").text(first).markup("\">").markup(words);
        html.markup("</a> ");
    };
    if first > 0 {
        link(first.saturating_sub(ROWS), "before");
    }
    if first.saturating_add(ROWS) < total {
        link(first + ROWS, "after");
    }
}
