//! A server of the program, and a client. The client speaks HTTP/1.1 over loopback without a
//! library, since a library might repair requests or answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::program::webtwin;

/// A serving process. It is stopped on drop.
pub(crate) struct Server {
    process: Child,
    message: BufReader<ChildStderr>,
    pub address: String,
}

impl Server {
    /// Starts a server of an index on a free port of loopback.
    pub(crate) fn start(arguments: &[&str]) -> Server {
        Server::of("serve", arguments)
    }

    /// Starts a serving command on a free port of loopback.
    pub(crate) fn of(command: &str, arguments: &[&str]) -> Server {
        let all = [&[command, "--listen", "127.0.0.1:0"][..], arguments].concat();
        let mut process = webtwin(&all).stdout(Stdio::null()).spawn().unwrap();
        let mut message = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        message.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap_or_else(|| panic!("{line}")).to_string();
        Server { process, message, address }
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id() as i32), signal).unwrap();
    }

    /// Stops the server. Returns its exit code and its messages since it has begun to listen.
    pub(crate) fn stop(self) -> (Option<i32>, String) {
        self.signal(Signal::SIGTERM);
        self.ended()
    }

    /// Waits until the server has ended by itself. A second signal would end it immediately.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let code = self.process.wait().unwrap().code();
        let mut message = String::new();
        self.message.read_to_string(&mut message).unwrap();
        (code, message)
    }

    /// Reads the next line of the server's messages.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.message.read_line(&mut line).unwrap();
        line
    }

    pub(crate) fn client(&self) -> Client {
        Client::of(&self.address)
    }

    /// Sends a GET request on a connection of its own.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.client().get(path)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An answer of the server.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|header| header.0 == name).map_or("", |header| &header.1)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// Returns the status and the code of a problem.
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        (self.status, problem["code"].as_str().unwrap().to_string())
    }
}

/// A persistent connection.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    address: String,
}

impl Client {
    pub(crate) fn of(address: &str) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client { stream: BufReader::new(stream), address: address.into() }
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, &[], b"")
    }

    pub(crate) fn post(&mut self, path: &str, kind: &str, body: &[u8]) -> Answer {
        self.ask("POST", path, &[("content-type", kind)], body)
    }

    pub(crate) fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|header| header.0 == "host") {
            head += &format!("host: {}\r\n", self.address);
        }
        head.extend(headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")));
        head += &format!("content-length: {}\r\n\r\n", body.len());
        self.send(&[head.as_bytes(), body].concat());
        self.answer().expect("an answer")
    }

    /// Sends bytes unchanged. The server may close the connection early if it refuses the request.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// Reads until `end` has occurred twice: at the end of a header, and of the content after it.
    pub(crate) fn read_until(&mut self, end: &str, most: Duration) -> String {
        self.stream.get_ref().set_read_timeout(Some(most)).unwrap();
        let (mut bytes, mut is_head) = (Vec::new(), true);
        loop {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
            match is_head {
                true => is_head = !bytes.ends_with(b"\r\n\r\n"),
                false if bytes.ends_with(end.as_bytes()) => return String::from_utf8(bytes).unwrap(),
                false => {}
            }
        }
    }

    /// Reads an answer like [`Client::answer`], but also returns `None` if the connection ends
    /// within it.
    pub(crate) fn whole_answer(&mut self) -> Option<Answer> {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.answer())).ok().flatten()
    }

    /// Returns the next answer, or `None` if the connection has ended.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_string())),
                None => break,
            }
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        let length = answer.header("content-length").parse().unwrap_or(0);
        answer.body.resize(length, 0);
        self.stream.read_exact(&mut answer.body).unwrap();
        Some(answer)
    }
}

/// Escapes a URL for a query.
pub(crate) fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
