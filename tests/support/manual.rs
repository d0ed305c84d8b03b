use std::path::Path;

/// Writes a crawl of three sites with one manual of six pages that link in a chain. The pages of c
/// have additional lines, and a home site links to a.
pub(crate) fn crawl(folder: &Path) -> String {
    let mut lines = String::new();
    for (site, extra) in [("a", ""), ("b", ""), ("c", "<p>one line more<p>and another")] {
        for page in 0..6 {
            let text: String =
                (0..12).map(|line| format!("<p>Page {page} says {line} times {}", page * 100 + line)).collect();
            let next = (page + 1) % 6;
            let html = format!("<html>{text}{extra}<p><a href='{next}.html'>next</a>");
            let url = format!("http://{site}.example/manual/{page}.html");
            lines.push_str(&format!("{}\n", serde_json::json!({"url": url, "html": html})));
        }
    }
    let home = "<a href='http://a.example/manual/0.html'>the manual</a>";
    lines.push_str(&format!("{}\n", serde_json::json!({"url": "http://home.example/", "html": home})));
    write(folder, "crawl.jsonl", &lines)
}

/// Writes a file and returns its path.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

/// Returns the URL of a page of a site.
pub(crate) fn url(site: &str, page: usize) -> String {
    format!("http://{site}.example/manual/{page}.html")
}
