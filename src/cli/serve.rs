//! `webtwin serve IDX`: serves an index over HTTP.

use std::path::PathBuf;

use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

use super::signals;
use webtwin_base::console::notify;
use webtwin_base::error::{Error, Result};
use webtwin_base::threads;
use webtwin_http::ServiceLimits;
use webtwin_view::serve::{ServeSettings, serve};

const EXAMPLES: &str = "\
Examples:
  webtwin serve idx/
  curl -s 'http://127.0.0.1:8600/v1/page?url=http://www.example.com/'
  curl -s --data-binary @urls.txt http://127.0.0.1:8600/v1/pages.txt
  webtwin serve idx/ --listen 10.0.0.7:8600 --key keys --host twins.example:8600
  webtwin serve indexes/ --follow      # indexes/CURRENT names the index: june/

/openapi.json describes all requests. SIGHUP opens the index again. SIGTERM ends the server once the requests in progress are
answered.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Folder of an index: path or URL
    index: String,
    /// Serve the index that the file CURRENT of the folder names, and switch whenever the file
    /// names another one
    #[arg(long)]
    follow: bool,
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8600")]
    listen: String,
    /// File of lines NAME KEY: clients send a key in the header Authorization: Bearer KEY. Required
    /// beyond loopback
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Name by which clients may address the server, with the port if they send it; may be given
    /// again
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Fraction of the pages to skip, different ones each day, that are answered by fetch, to check
    /// that they are still copies
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    recheck: f64,
    /// Verify the checksums of the whole index before serving it; otherwise blocks are verified as
    /// they are read
    #[arg(long)]
    verify: bool,
    /// Number of threads that answer requests [default: all cores]
    #[arg(long, value_name = "N", help_heading = "Effort", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

pub(super) fn run(args: Args) -> Result<()> {
    if !(0.0..=1.0).contains(&args.recheck) {
        return Err(Error::Usage(format!("--recheck is {}, but must be a fraction from 0 to 1", args.recheck)));
    }
    let settings = ServeSettings {
        index: args.index,
        follow: args.follow,
        recheck: args.recheck,
        verify: args.verify,
        front: webtwin_http::ServiceSettings {
            listen: args.listen,
            hosts: args.host,
            keys: args.key,
            threads: super::threads(args.threads),
            limits: ServiceLimits::default(),
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
        notify(format_args!("listening on http://{address}"));
    })?;
    notify("ended after answering all requests");
    Ok(())
}
