//! `webtwin serve IDX`: serves an index over HTTP.

use std::path::PathBuf;

use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

use super::signals;
use webtwin_base::console::tell;
use webtwin_base::error::{Error, Result};
use webtwin_base::threads;
use webtwin_http::Limits;
use webtwin_view::serve::{Settings, serve};

const EXAMPLES: &str = "\
Examples:
  webtwin serve idx/
  curl -s 'http://127.0.0.1:8600/v1/page?url=http://www.example.com/'
  curl -s --data-binary @urls.txt http://127.0.0.1:8600/v1/pages.txt
  webtwin serve idx/ --listen 10.0.0.7:8600 --key keys --host twins.example:8600
  webtwin serve indexes/ --follow      # indexes/CURRENT names the index: june/

/openapi.json lists what it answers. SIGHUP opens the index anew; SIGTERM ends it once requests on their way are answered.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Folder of an index: path or URL
    index: String,
    /// The folder's file CURRENT names the index; whenever it names another, that one is served
    #[arg(long)]
    follow: bool,
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8600")]
    listen: String,
    /// File of lines NAME KEY: who may ask, by the header Authorization: Bearer KEY. Needed beyond loopback
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Name by which clients may call the server, with the port if they name it; may be given again
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Share of the pages to skip, other ones each day, that are answered by fetch, to see whether they still are copies
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    recheck: f64,
    /// Hold an index against its checksums before it is served; otherwise its blocks are checked as they are touched
    #[arg(long)]
    verify: bool,
    /// Threads that answer; all cores when not given
    #[arg(long, value_name = "N", help_heading = "Effort", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

pub(super) fn run(args: Args) -> Result<()> {
    if !(0.0..=1.0).contains(&args.recheck) {
        return Err(Error::Usage(format!("--recheck {}: must be a share from 0 to 1", args.recheck)));
    }
    let settings = Settings {
        index: args.index,
        follow: args.follow,
        recheck: args.recheck,
        verify: args.verify,
        front: webtwin_http::Settings {
            listen: args.listen,
            hosts: args.host,
            keys: args.key,
            threads: super::threads(args.threads),
            limits: Limits::default(),
        },
    };
    serve(settings, |address, handle| {
        let to_stop = handle.clone();
        signals::ends_by(move |_| to_stop.stop());
        if let Ok(mut hangups) = Signals::new([SIGHUP]) {
            let _ = threads::start(move || {
                for _ in hangups.forever() {
                    // The error has been reported already.
                    let _ = handle.reload();
                }
            });
        }
        tell(format_args!("listening on http://{address}"));
    })?;
    tell("ended: all requests that had come are answered");
    Ok(())
}
