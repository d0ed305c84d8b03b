//! `webtwin lookup IDX < urls > answers`: answers lines of URLs from an index.

use std::io::{BufRead, BufReader, Write};

use webtwin_base::console::{ended, notify};
use webtwin_base::error::{Error, Result};
use webtwin_view::lookup::LookupIndex;
use webtwin_view::lookup::alternates::{CopyOrder, alternates};
use webtwin_view::lookup::answer::{LineForm, LookupSession, answer_lines, id_of};

const EXAMPLES: &str = "\
Examples:
  webtwin lookup idx/ < urls.txt > answers.txt
  webtwin lookup idx/ --json < urls.txt | jq -r 'select(.action == \"skip\") | .keep.url'
  webtwin lookup idx/ --alternates --newest < dead-urls.txt
  webtwin lookup idx/ --verify < /dev/null      # verifies the index only

The answer to a line is fetch, skip, unknown or reject; skip is followed by a tab and the URL of the page that stays.";

/// Maximum number of bytes of lines that are answered together.
const BLOCK: usize = 1 << 18;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Folder of an index: path or URL
    index: String,
    /// Read doc ids, 16 hexadecimal digits a line, instead of URLs
    #[arg(long)]
    id: bool,
    /// Print one JSON object a line, with everything that the index has about the page
    #[arg(long)]
    json: bool,
    /// Print the copies of each page, the nearest text first, one a line: page, tab, copy; with
    /// --json one array a line
    #[arg(long)]
    alternates: bool,
    /// With --alternates: the newest copies first
    #[arg(long, requires = "alternates")]
    newest: bool,
    /// With --alternates: only copies on other hosts
    #[arg(long, requires = "alternates")]
    elsewhere: bool,
    /// With --alternates: maximum number of copies of a page
    #[arg(long, value_name = "N", default_value_t = 20, requires = "alternates")]
    limit: usize,
    /// Verify the checksums of the whole index before answering
    #[arg(long)]
    verify: bool,
}

/// Number of bytes beyond which a line is longer than any URL of a page.
const MAX_LINE_BYTES: usize = 64 << 10;

pub(super) fn run(args: Args) -> Result<()> {
    let index = LookupIndex::open(&args.index)?;
    if args.verify {
        index.verify()?;
        notify(format_args!("{}: {} pages, all files match their checksums", args.index, index.pages()));
    }
    let mut asker = LookupSession::new(&index, None);
    let (mut lines, mut answers) = (String::new(), String::new());
    let mut input = BufReader::with_capacity(BLOCK, std::io::stdin().lock());
    let mut output = std::io::stdout().lock();
    while read_lines(&mut input, &mut lines)? {
        answers.clear();
        match args.alternates {
            false => _ = answer_lines(&mut asker, &lines, LineForm { ids: args.id, json: args.json }, &mut answers)?,
            true => lines.lines().try_for_each(|line| copies(&mut asker, line, &args, &mut answers))?,
        }
        ended(output.write_all(answers.as_bytes()))?;
    }
    ended(output.flush())
}

/// Replaces `lines` with the complete lines that are available, and waits for one if there is none.
/// Returns false at the end. So a client that writes a line and waits for its answer receives it.
/// Bytes of a line beyond [`MAX_LINE_BYTES`] may be dropped: such a line is not a URL with or
/// without them.
fn read_lines(input: &mut impl BufRead, lines: &mut String) -> Result<bool> {
    let mut bytes = std::mem::take(lines).into_bytes();
    bytes.clear();
    loop {
        let read = input.fill_buf().map_err(|cause| Error::storage("stdin", cause))?;
        let (length, end) = (read.len(), read.iter().rposition(|&byte| byte == b'\n').map(|at| at + 1));
        if end.is_some() || bytes.len() < MAX_LINE_BYTES {
            bytes.extend_from_slice(&read[..end.unwrap_or(length)]);
        }
        input.consume(end.unwrap_or(length));
        if end.is_some() || length == 0 {
            break;
        }
    }
    let has_more = !bytes.is_empty();
    // A line that is not UTF-8 is not a URL and is rejected as such.
    *lines = String::from_utf8(bytes).unwrap_or_else(|not| String::from_utf8_lossy(not.as_bytes()).into_owned());
    Ok(has_more)
}

/// Answers a line with the copies of its page.
fn copies(asker: &mut LookupSession<'_>, line: &str, args: &Args, output: &mut String) -> Result<()> {
    let page = match args.id {
        false => asker.url(line)?.page,
        true => match id_of(line.trim()) {
            Some(id) => asker.id(id)?.page,
            None => None,
        },
    };
    let order = CopyOrder { newest: args.newest, elsewhere: args.elsewhere };
    let copies = page.map_or(Ok(Vec::new()), |page| alternates(asker.index, page, order, args.limit))?;
    if args.json {
        output.push_str(&serde_json::to_string(&copies).expect("alternates are plain values"));
        output.push('\n');
        return Ok(());
    }
    for copy in copies {
        output.push_str(line.trim());
        output.push('\t');
        output.push_str(&copy.url);
        output.push('\n');
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_lines_with_any_read_size() {
        let text: String = (0..200_000).map(|n| format!("http://a.example/{n}\n")).collect::<String>() + "last";
        for capacity in [3, 4096, 1 << 20] {
            let mut input = BufReader::with_capacity(capacity, text.as_bytes());
            let (mut lines, mut joined, mut blocks) = (String::new(), String::new(), 0);
            while read_lines(&mut input, &mut lines).unwrap() {
                assert!(lines.ends_with('\n') || lines.ends_with("last"));
                joined.push_str(&lines);
                blocks += 1;
            }
            assert!(joined == text && blocks > 1);
        }
    }

    #[test]
    fn endless_line_is_not_buffered() {
        let text = "x".repeat(3 << 20) + "\nhttp://a.example/";
        let mut input = BufReader::with_capacity(1 << 12, text.as_bytes());
        let (mut lines, mut joined) = (String::new(), Vec::new());
        while read_lines(&mut input, &mut lines).unwrap() {
            joined.extend(lines.lines().map(|line| line[..line.len().min(20)].to_string()));
            assert!(lines.len() < 100_000);
        }
        assert_eq!(joined, ["x".repeat(20), "http://a.example/".into()]);
    }
}
