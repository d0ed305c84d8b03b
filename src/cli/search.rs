//! `webtwin search IDX WORDS`: searches the texts of an index.

use std::fmt::Write as _;
use std::io::Write;

use super::show::on_terminal;
use webtwin_base::console::ended;
use webtwin_base::error::{Error, Result};
use webtwin_view::lookup::Index;
use webtwin_view::lookup::search::{Found, Replicas, Shown, Wanted, search};
use webtwin_view::search::words::Question;

const EXAMPLES: &str = "\
Examples:
  webtwin index out/ --output idx/ --text
  webtwin search idx/ user manual
  webtwin search idx/ manual host:www.example.com --roll off
  webtwin search idx/ manual in:mirrors --reorder --json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Folder of an index made with --text: path or URL
    index: String,
    /// Words that a page must have, all of them; host:NAME for pages of a host, in:mirrors for those of collections with mirrors
    #[arg(required = true)]
    words: Vec<String>,
    /// Whether mirrored collections and copies are one result each
    #[arg(long, value_enum, default_value = "on")]
    roll: Roll,
    /// Results that say again what a higher one says move down, by the share of chunks they have in common
    #[arg(long)]
    reorder: bool,
    /// An object of JSON with all that is known
    #[arg(long)]
    json: bool,
    /// The most results
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Results that are passed over
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Roll {
    /// They are
    On,
    /// Each page is a result of its own
    Off,
}

pub(super) fn run(args: Args) -> Result<()> {
    let question = Question::parse(&args.words.join(" ")).map_err(Error::Usage)?;
    let index = Index::open(&args.index)?;
    let wanted = Wanted { roll: args.roll == Roll::On, reorder: args.reorder, from: args.from, limit: args.limit };
    let found = search(&index, &question, wanted)?;
    let text = match args.json {
        true => serde_json::to_string(&found).expect("results are plain values") + "\n",
        false => lines(&found),
    };
    let mut output = std::io::stdout().lock();
    ended(output.write_all(text.as_bytes()))?;
    ended(output.flush())
}

/// Formats results as text.
fn lines(found: &Found) -> String {
    let mut text = found.head() + "\n";
    for (shown, number) in found.shown.iter().zip(found.from + 1..) {
        let title = if shown.title.text.is_empty() { &shown.page.url } else { &shown.title.text };
        let _ = write!(text, "\n{number}. {}\n   {}\n", on_terminal(title), on_terminal(&shown.page.url));
        if !shown.snippet.text.is_empty() {
            let _ = writeln!(text, "   {}", on_terminal(&shown.snippet.text));
        }
        behind(shown, &mut text);
    }
    text
}

/// Formats the pages that a result rolls up.
fn behind(shown: &Shown, text: &mut String) {
    if let Some(collection) = &shown.collection {
        let _ = writeln!(text, "   Collection {}: {} pages match", collection.id, collection.pages);
    }
    if let Some(Replicas { kind, count, named }) = &shown.replica {
        let _ = writeln!(text, "   Replica: {count} other {kind}");
        for one in named {
            let _ = writeln!(text, "     {} ({} match)", on_terminal(&one.url), one.pages);
        }
    }
    if let Some(said) = &shown.said_by {
        let url = on_terminal(&said.page.url);
        let _ = writeln!(text, "   {} of its {} chunks are in {url}", said.shared, said.chunks);
    }
}
