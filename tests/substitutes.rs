//! The text of each skipped page is kept on another page. The cases are editions in two languages,
//! versions that have drifted apart, and prefixes, which must not be wider than the mirrors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::program::{assert_same_on_any_workers, rows, succeed};

const ENGLISH: [&str; 4] = [
    "This directive sets the limit that is used by the server for each of its clients",
    "The value of this option can be given in the file or on the line of the command",
    "It is an error if there is no such name in the list that was read at the start",
    "You can use this with all of the other parts if they are not in use at this time",
];

const FRENCH: [&str; 4] = [
    "Cette directive fixe la limite qui est utilisée par le serveur pour chacun de ses clients",
    "La valeur de cette option est donnée dans le fichier ou sur la ligne de la commande",
    "C'est une erreur si ce nom ne figure pas dans la liste qui est lue au démarrage par le serveur",
    "Il est possible de l'utiliser avec les autres parties si elles ne sont pas en service en ce moment",
];

/// Returns a page of `total` lines in one language. The first `code` lines are code that all
/// editions share.
fn page(name: usize, sentences: [&str; 4], code: usize, total: usize, links: &str) -> String {
    let code = (0..code).map(|line| format!("<pre>x{name}_{line} = load({});</pre>", name * 1000 + line));
    let text = (code.len()..total).map(|line| format!("<p>{}, {name} {line}.</p>", sentences[line % 4]));
    code.clone().chain(text).collect::<String>() + links
}

/// Writes two editions of a manual, each on three hosts. More than half of each page is code, which
/// both editions share.
fn editions(folder: &Path) -> String {
    let mut lines = String::new();
    for (host, sentences) in
        [("en1", ENGLISH), ("en2", ENGLISH), ("en3", ENGLISH), ("fr1", FRENCH), ("fr2", FRENCH), ("fr3", FRENCH)]
    {
        for name in 0..6 {
            let links =
                format!("<p><a href='{}.html'>next</a><a href='{}.html'>previous</a>", (name + 1) % 6, (name + 5) % 6);
            let html = page(name, sentences, 16, 26, &links);
            let url = format!("http://{host}.example/manual/{name}.html");
            lines += &format!("{}\n", serde_json::json!({"url": url, "html": html}));
        }
    }
    let path = folder.join("crawl.jsonl");
    std::fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_string()
}

/// Returns the avoid list as (host to skip, host to keep), and the roles of the pages that stay.
fn outcome(output: &str) -> (BTreeSet<(String, String)>, BTreeMap<String, usize>) {
    let host = |url: &serde_json::Value| url.as_str().unwrap()[7..10].to_string();
    let skipped = rows(output, "avoid").iter().map(|row| (host(&row["url"]), host(&row["keep_url"]))).collect();
    let mut roles = BTreeMap::new();
    for row in rows(output, "clusters") {
        *roles.entry(row["role"].as_str().unwrap().to_string()).or_default() += 1;
    }
    (skipped, roles)
}

#[test]
fn one_copy_of_each_edition_stays_though_all_are_similar() {
    let folder = tempfile::tempdir().unwrap();
    let input = editions(folder.path());
    let output = folder.path().join("out").to_str().unwrap().to_string();
    succeed(&["run", "--input", &input, "--output", &output]);
    let languages: BTreeSet<String> =
        rows(&output, "pages").iter().map(|row| row["language"].as_str().unwrap().to_string()).collect();
    assert_eq!(languages, BTreeSet::from(["en".to_string(), "fr".to_string()]));
    let (skipped, roles) = outcome(&output);
    let edition = |host: &str| host[..2].to_string();
    assert!(skipped.iter().all(|(skip, keep)| edition(skip) == edition(keep)), "{skipped:?}");
    assert_eq!(rows(&output, "avoid").len(), 24, "{roles:?}");
    assert_eq!(roles.get("language"), Some(&6), "{roles:?}");

    // Without the rule, one edition would replace both.
    let all = folder.path().join("all").to_str().unwrap().to_string();
    succeed(&["run", "--input", &input, "--output", &all, "--set", "keep.min_resemblance=0"]);
    assert_eq!(rows(&all, "avoid").len(), 30);
    assert_same_on_any_workers(folder.path(), "same", &["run", "--input", &input]);
}

/// Writes versions of a manual on four hosts. Each version has dropped some lines of the previous
/// one and has new ones in place of them.
fn versions(folder: &Path) -> String {
    let mut lines = String::new();
    for version in 0..4 {
        for name in 0..6 {
            let links =
                format!("<p><a href='{}.html'>next</a><a href='{}.html'>previous</a>", (name + 1) % 6, (name + 5) % 6);
            let text =
                (version * 8..version * 8 + 20).map(|line| format!("<p>{}, {name} {line}.</p>", ENGLISH[line % 4]));
            let url = format!("http://v{version}.example/manual/{name}.html");
            lines += &format!("{}\n", serde_json::json!({"url": url, "html": text.collect::<String>() + &links}));
        }
    }
    // These pages are in no collection, and no prefix may cover their folder.
    for name in 0..3 {
        let html = page(name, ENGLISH, 4, 20, "");
        for host in ["x1", "x2"] {
            let url = format!("http://{host}.example/loose/{name}.html");
            lines += &format!("{}\n", serde_json::json!({"url": url, "html": html}));
        }
    }
    let path = folder.join("crawl.jsonl");
    std::fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn page_is_skipped_only_if_a_kept_page_contains_half_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let input = versions(folder.path());
    let output = folder.path().join("out").to_str().unwrap().to_string();
    succeed(&["run", "--input", &input, "--output", &output]);
    let avoid = rows(&output, "avoid");
    assert!(avoid.iter().all(|row| row["contained"].as_f64().unwrap() >= 0.5), "{avoid:?}");
    // Consecutive versions share three fifths of their lines, and versions two steps apart one
    // fifth. So two of the four versions stay.
    let versions = avoid.iter().filter(|row| row["url"].as_str().unwrap().contains("manual")).count();
    assert_eq!(versions, 12, "{avoid:?}");
    let kept_urls: BTreeSet<&str> = avoid.iter().map(|row| row["keep_url"].as_str().unwrap()).collect();
    assert!(avoid.iter().all(|row| !kept_urls.contains(row["url"].as_str().unwrap())));
    let prefixes = std::fs::read_to_string(Path::new(&output).join("exports/prefixes.txt")).unwrap();
    assert!(prefixes.contains("/manual/") && !prefixes.contains("/loose/"), "{prefixes}");
    assert_same_on_any_workers(folder.path(), "same", &["run", "--input", &input]);
}

/// Writes pages of one template on six hosts, such as the search pages of manuals. `title` returns
/// the title of each host.
fn template(folder: &Path, title: impl Fn(usize) -> String) -> String {
    let mut lines = String::new();
    for host in 0..6 {
        let own = format!("<p>What stands only on host {host}, and there once.</p>");
        let html = format!("<title>{}</title>{}{own}", title(host), page(7, ENGLISH, 0, 20, ""));
        let url = format!("http://h{host}.example/{}/search.html", ["a", "bb", "ccc"][host % 3]);
        lines += &format!("{}\n", serde_json::json!({"url": url, "html": html}));
    }
    let path = folder.join("template.jsonl");
    std::fs::write(&path, lines).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn pages_of_other_hosts_whose_titles_name_other_things_stay() {
    let folder = tempfile::tempdir().unwrap();
    let skipped = |title: &dyn Fn(usize) -> String, sets: &[&str]| {
        let input = template(folder.path(), title);
        let out = tempfile::tempdir().unwrap();
        let output = out.path().join("out").to_str().unwrap().to_string();
        succeed(&[&["run", "--input", &input, "--output", &output], sets].concat());
        let (skipped, roles) = outcome(&output);
        (skipped.len(), roles.get("title").copied())
    };
    // Three projects have two versions of their manual each.
    let projects = |host: usize| format!("Search — {} {host}.0 documentation", ["nova", "cinder", "ironic"][host / 2]);
    assert_eq!(skipped(&projects, &[]), (3, Some(2)));
    assert_eq!(skipped(&projects, &["--set", "keep.min_resemblance=0"]), (5, None));
    assert_eq!(skipped(&|host| format!("Search — nova {host}.0 documentation"), &[]), (5, None));
    assert_eq!(skipped(&|host| if host == 0 { String::new() } else { "Nova".into() }, &[]), (5, None));
    let input = template(folder.path(), projects);
    assert_same_on_any_workers(folder.path(), "same", &["run", "--input", &input]);
}
