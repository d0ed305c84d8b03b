//! `webtwin search IDX WORDS`: searches the texts of an index.

use std::fmt::Write as _;
use std::io::Write;

use super::show::on_terminal;
use webtwin_base::console::ended;
use webtwin_base::error::{Error, Result};
use webtwin_view::lookup::LookupIndex;
use webtwin_view::lookup::search::{OtherReplicas, SearchMatches, SearchOptions, SearchResult, search};
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
    /// Words that a page must contain, all of them; host:NAME for pages of a host, in:mirrors for
    /// pages of mirrored collections
    #[arg(required = true)]
    words: Vec<String>,
    /// Roll up mirrored collections and copies to one result each
    #[arg(long, value_enum, default_value = "on")]
    roll: Roll,
    /// Move results down that repeat chunks of higher ones
    #[arg(long)]
    reorder: bool,
    /// Print one JSON object with everything instead of text
    #[arg(long)]
    json: bool,
    /// Maximum number of results
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Number of results to skip
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Roll {
    /// One result for a collection or a set of copies
    On,
    /// One result for each page
    Off,
}

pub(super) fn run(args: Args) -> Result<()> {
    let question = Question::parse(&args.words.join(" ")).map_err(Error::Usage)?;
    let index = LookupIndex::open(&args.index)?;
    let options =
        SearchOptions { roll: args.roll == Roll::On, reorder: args.reorder, from: args.from, limit: args.limit };
    let matches = search(&index, &question, options)?;
    let text = match args.json {
        true => serde_json::to_string(&matches).expect("results are plain values") + "\n",
        false => lines(&matches),
    };
    let mut output = std::io::stdout().lock();
    ended(output.write_all(text.as_bytes()))?;
    ended(output.flush())
}

/// Formats results as text.
fn lines(matches: &SearchMatches) -> String {
    let mut text = matches.head() + "\n";
    for (result, number) in matches.shown.iter().zip(matches.from + 1..) {
        let title = if result.title.text.is_empty() { &result.page.url } else { &result.title.text };
        let _ = write!(text, "\n{number}. {}\n   {}\n", on_terminal(title), on_terminal(&result.page.url));
        if !result.snippet.text.is_empty() {
            let _ = writeln!(text, "   {}", on_terminal(&result.snippet.text));
        }
        format_rolled_up(result, &mut text);
    }
    text
}

/// Formats the pages that a result rolls up.
fn format_rolled_up(result: &SearchResult, text: &mut String) {
    if let Some(collection) = &result.collection {
        let _ = writeln!(text, "   Collection {}: {} pages match", collection.id, collection.pages);
    }
    if let Some(OtherReplicas { kind, count, named: examples }) = &result.replica {
        let _ = writeln!(text, "   Replica: {count} other {kind}");
        for example in examples {
            let _ = writeln!(text, "     {} ({} match)", on_terminal(&example.url), example.pages);
        }
    }
    if let Some(message) = &result.said_by {
        let url = on_terminal(&message.page.url);
        let _ = writeln!(text, "   {} of its {} chunks are in {url}", message.shared, message.chunks);
    }
}
