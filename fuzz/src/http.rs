//! HTTP: a response in a WARC record yields one page or one rejection, whatever its header
//! contains. The server answers every request with a complete response, and never with an internal
//! error.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::{first, found, made};
use webtwin_base::read_at::Bytes;
use webtwin_http::{ServiceLimits, ServiceSettings};
use webtwin_job::{InputSettings, RecordLimits};
use webtwin_pages::record::ReadResult;
use webtwin_pages::warc::read_range;
use webtwin_view::serve::{ServeSettings, serve};

/// Returns the address of a server with an index. Its thread ends with the process.
fn server() -> SocketAddr {
    static SERVER: OnceLock<SocketAddr> = OnceLock::new();
    *SERVER.get_or_init(|| {
        let index = made::folder().join("index").to_str().expect("the path is UTF-8").to_string();
        let (notify, message) = channel();
        let settings = ServeSettings {
            index,
            follow: false,
            recheck: 0.0,
            verify: false,
            front: ServiceSettings {
                listen: "127.0.0.1:0".into(),
                hosts: Vec::new(),
                keys: None,
                threads: 1,
                limits: ServiceLimits::default(),
            },
        };
        // Dropping the handle would stop the server.
        std::thread::spawn(move || {
            serve(settings, |address, handle| notify.send((address, handle)).expect("the receiver is waiting"))
        });
        let (address, handle) = message.recv().expect("a server listens");
        std::mem::forget(handle);
        address
    })
}

/// Checks one input of the fuzzer.
pub fn check(data: &[u8]) {
    let Some((how, rest)) = first(data) else { return };
    match how % 3 {
        0 => stored(rest),
        1 => raw(rest),
        _ => asked(how / 3, rest),
    }
}

/// Checks that a response as a crawler has stored it yields one page or one rejection.
fn stored(response: &[u8]) {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
        response.len()
    );
    let file = Bytes([head.as_bytes(), response, b"\r\n\r\n"].concat());
    let limits = RecordLimits { record_bytes: 1 << 16, head_bytes: 1 << 11, ..RecordLimits::default() };
    let length = file.0.len() as u64;
    let (_, all) =
        found(|sink| read_range(&file, 0..length, &InputSettings { limits, ..InputSettings::default() }, sink));
    let [one] = &all[..] else { panic!("{} results of one record", all.len()) };
    if let ReadResult::Page(page) = one {
        assert!((200..300).contains(&page.status) && page.body.len() as u64 <= limits.record_bytes);
        assert_eq!((page.offset, page.length), (0, length));
        assert!(!page.mime.contains([';', ' ']) && page.mime.to_lowercase() == page.mime);
    }
}

/// Sends arbitrary bytes and checks the answer.
fn raw(bytes: &[u8]) {
    let answer = answered(bytes, true);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{:?}", String::from_utf8_lossy(&answer));
    assert!(
        !answer.get(8..).is_some_and(|status| status.starts_with(b" 500")),
        "{:?}",
        String::from_utf8_lossy(&answer)
    );
}

/// Sends a request with a valid header to a path of the server, and checks the answer.
fn asked(which: usize, rest: &[u8]) {
    const PATHS: [(&str, &str); 16] = [
        ("GET", "/v1/page?"),
        ("POST", "/v1/pages"),
        ("POST", "/v1/pages.txt"),
        ("POST", "/v1/check?"),
        ("POST", "/v1/near"),
        ("GET", "/v1/near/"),
        ("GET", "/v1/set/"),
        ("GET", "/v1/collection/"),
        ("GET", "/v1/explain?a="),
        ("GET", "/v1/alternates?url="),
        ("GET", "/v1/redirect?url="),
        ("GET", "/sets?"),
        ("GET", "/set/"),
        ("GET", "/page?url="),
        ("GET", "/compare?a="),
        ("GET", "/"),
    ];
    let (method, path) = PATHS[which % PATHS.len()];
    // The bytes up to the first zero byte are the rest of the target; the others are the body.
    let (target, body) = rest.split_at(rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len()));
    let target = target.iter().map(|&byte| match byte {
        b'!'..=b'~' if !b"\"<>\\^`{|}#".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    let kind = ["application/json", "text/plain; charset=utf-8", "text/html"][which / PATHS.len() % 3];
    let body = body.get(1..).unwrap_or_default();
    let head = format!(
        "{method} {path}{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        target.collect::<String>(),
        body.len()
    );
    let answer = answered(&[head.as_bytes(), body].concat(), false);
    let text = String::from_utf8_lossy(&answer);
    let (head, content) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text:?}"));
    let status: u32 = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    assert!(matches!(status, 200 | 302 | 400..500), "{text}");
    if head.to_ascii_lowercase().contains("json") {
        serde_json::from_str::<serde_json::Value>(content).unwrap_or_else(|cause| panic!("{cause}: {text}"));
    }
}

/// Returns the server's answer up to the end of the connection. Set `ends` for bytes that may not
/// be a complete request: it closes the sending side, after which the server may close the
/// connection, too.
fn answered(request: &[u8], ends: bool) -> Vec<u8> {
    let mut stream = TcpStream::connect(server()).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    // The server may refuse the request and close the connection before it has read everything.
    stream.write_all(request).and_then(|()| if ends { stream.shutdown(Shutdown::Write) } else { Ok(()) }).ok();
    let mut answer = Vec::new();
    if let Err(cause) = stream.read_to_end(&mut answer) {
        assert!(cause.kind() == std::io::ErrorKind::ConnectionReset, "{cause}");
    }
    answer
}
