//! Test support: a foxy on free loopback ports, an origin server that counts requests, and a simple
//! client. The module `commands` starts all other foxy commands.

#![allow(dead_code, reason = "each test program uses its part")]

pub mod black_box;
pub mod commands;
pub mod exposition;
pub mod loop_device;
pub mod namespace;
pub mod run_record;

use foxy_testkit::client::exchange;
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::PATIENCE;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// A running foxy. Drop kills it.
pub struct Foxy {
    child: Child,
    pub proxy: SocketAddr,
    pub admin: SocketAddr,
    /// The start-up message.
    pub welcome: String,
    /// Lines of standard error after the start-up message.
    reports: Mutex<Receiver<String>>,
}

impl Foxy {
    /// Starts a foxy with a store of 64 MiB in `folder`, and waits until it is ready.
    pub fn start(folder: &Path, more: &[&str]) -> Self {
        Self::start_plain(folder, &[&["--size", "64M"], more].concat())
    }

    /// Starts a foxy with its store in `folder`, with the store's default size, and waits until it
    /// is ready.
    pub fn start_plain(folder: &Path, more: &[&str]) -> Self {
        Self::ready(command(folder, more))
    }

    /// Runs a command that starts foxy, and waits until foxy is ready.
    pub fn ready(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary runs");
        let mut reports = BufReader::new(child.stderr.take().expect("piped"));
        let mut welcome = String::new();
        while !welcome.contains("\n  curl ") {
            let read = reports.read_line(&mut welcome).expect("readable");
            assert!(read > 0, "foxy did not start: {welcome}");
        }
        let (proxy, admin) = (address_after(&welcome, "proxy"), address_after(&welcome, "admin"));
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            while reports.read_line(&mut line).is_ok_and(|read| read > 0)
                && sender.send(std::mem::take(&mut line)).is_ok()
            {}
        });
        Self { child, proxy, admin, welcome, reports: Mutex::new(lines) }
    }

    /// Starts a foxy with its store in `folder`, which is a file system in memory with these mount
    /// options. Returns `None` if this user may not mount, even in a namespace.
    pub fn start_on(options: &str, folder: &Path, more: &[&str]) -> Option<Self> {
        Some(Self::ready(inside(options, folder, more)?))
    }

    /// Sends a signal by its name, as for kill(1).
    pub fn signal(&self, name: &str) {
        commands::signal(self.child.id(), name);
    }

    /// Returns the peak of foxy's resident memory in bytes (`VmHWM`).
    pub fn peak_memory(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn status(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes << 10
    }

    /// Returns foxy's resident memory in bytes (`VmRSS`).
    pub fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the ids of foxy's child processes.
    pub fn children(&self) -> Vec<u32> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("Linux");
        let children: String = tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
            .collect();
        assert!(!children.is_empty(), "it has none");
        children.split_whitespace().map(|child| child.parse().expect("a number")).collect()
    }

    /// Waits for a line of standard error that contains `part`, up to two minutes for each line.
    pub fn report_containing(&mut self, part: &str) {
        let mut seen = String::new();
        loop {
            match self
                .reports
                .get_mut()
                .expect("no reader panicked")
                .recv_timeout(Duration::from_secs(120))
            {
                Ok(line) if line.contains(part) => return,
                Ok(line) => seen += &line,
                Err(error) => panic!("{error}: foxy did not report {part:?}, but:\n{seen}"),
            }
        }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    /// Waits until foxy has ended. Returns its exit status and its standard error.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let rest = self.reports.get_mut().expect("no reader panicked").iter().collect();
        (self.child.wait().expect("a child"), rest)
    }

    /// Kills foxy with SIGKILL, so that it cannot write anything more.
    pub fn kill(mut self) {
        self.child.kill().expect("a running child");
        self.child.wait().expect("a child");
    }

    /// Requests a URL through the proxy with GET.
    pub fn get(&self, url: &str) -> Response {
        let host = url.trim_start_matches("http://").split('/').next().expect("a host").to_owned();
        request(
            self.proxy,
            &format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
        )
    }

    /// Returns the first value of a metric, ignoring labels.
    pub fn metric<T: FromStr>(&self, name: &str) -> T {
        let text = self.admin("/metrics").body;
        let line = text.lines().find(|line| line.split([' ', '{']).next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
    }

    /// Requests a page of the admin server.
    pub fn admin(&self, target: &str) -> Response {
        request(self.admin, &format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.admin))
    }
}

impl Drop for Foxy {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}

/// Writes a file that only its owner may read.
pub fn write_secret(path: &Path, text: &str) {
    std::fs::write(path, text).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, mode).expect("changed");
}

/// Prints that some checks were not run, even while the test harness captures output. Panics
/// instead if the environment requires all checks.
pub fn not_run(checks: &str, reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "{checks}: not run: {reason}");
    let text = format!("\nNOT RUN: {checks}: {reason}\n");
    std::io::stderr().write_all(text.as_bytes()).expect("standard error is writable");
}

/// Prepares `foxy serve` on free ports, with its store in `folder`.
pub fn command(folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(black_box::binary());
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::null());
    command.args(["serve", "--allow-destination", "127.0.0.0/8", "--workers", "2"]);
    for flag in ["--listen", "--admin"] {
        if !more.contains(&flag) {
            command.args([flag, "127.0.0.1:0"]);
        }
    }
    if !more.contains(&"--memory") {
        command.args(["--memory", "8M"]);
    }
    command.arg("--store").arg(folder).args(more);
    command
}

/// Starts a foxy that must refuse to start, with a store of 64 MiB. Returns the exit code and
/// standard error.
pub fn refused(folder: &Path, more: &[&str]) -> (Option<i32>, String) {
    let size: &[&str] = if more.contains(&"--size") { &[] } else { &["--size", "64M"] };
    refused_plain(folder, &[size, more].concat())
}

/// Starts a foxy that must refuse to start. Returns the exit code and standard error.
pub fn refused_plain(folder: &Path, more: &[&str]) -> (Option<i32>, String) {
    let output = command(folder, more).stderr(Stdio::piped()).output().expect("the binary runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Starts a foxy that must refuse a store in `folder`, which is a file system in memory with these
/// mount options. Returns `None` if this user may not mount, even in a namespace.
pub fn refused_on(options: &str, folder: &Path) -> Option<(Option<i32>, String)> {
    refused_with(options, folder, &["--size", "64M"])
}

/// Does the same as [`refused_on`], with additional arguments for foxy.
pub fn refused_with(options: &str, folder: &Path, more: &[&str]) -> Option<(Option<i32>, String)> {
    let output = inside(options, folder, more)?.output().expect("unshare ran before");
    Some((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// Prepares `foxy serve` in a mount namespace where `folder` is a separate file system.
fn inside(options: &str, folder: &Path, more: &[&str]) -> Option<Command> {
    commands::on_file_system(options, folder, &command(folder, more))
}

/// Returns the address that the start-up message has in its line `name`.
pub fn address_after(message: &str, name: &str) -> SocketAddr {
    let line = message.lines().find(|line| line.trim_start().starts_with(name)).expect(name);
    let address = line.split("http://").nth(1).expect("an address");
    let end = address.find(['/', ' ']).unwrap_or(address.len());
    address[..end].parse().expect("an address")
}

/// A response, parsed just enough for tests.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// Values of fields by lower-case name. If a name is repeated, contains the last value.
    /// `Cache-Status` is a list: contains all its values, separated by commas.
    pub fields: BTreeMap<String, String>,
    /// All bytes after the head.
    pub body: String,
}

impl Response {
    /// Returns the value of `Cache-Status`, or empty text.
    pub fn cache_status(&self) -> &str {
        self.fields.get("cache-status").map_or("", String::as_str)
    }

    /// Parses the bytes of a whole response.
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let parts = text.split_once("\r\n\r\n");
        let (head, body) = parts.unwrap_or_else(|| panic!("no head in {text:?}"));
        let mut lines = head.split("\r\n");
        let status =
            lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status");
        let mut fields = BTreeMap::<String, String>::new();
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            let known = fields.entry(name.to_lowercase()).or_default();
            if name.eq_ignore_ascii_case("cache-status") && !known.is_empty() {
                known.push_str(", ");
            } else {
                known.clear();
            }
            known.push_str(value);
        }
        Self { status, fields, body: body.to_owned() }
    }
}

/// Sends `text`, and reads until the server closes the connection.
pub fn request(to: SocketAddr, text: &str) -> Response {
    let stream = TcpStream::connect(to).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    Response::parse(&exchange(stream, text))
}

/// An origin server that counts its requests. The responses of this origin may be cached for an
/// hour.
pub struct Origin {
    pub address: SocketAddr,
    origin: TestOrigin,
}

impl Origin {
    /// Starts an origin. It runs until the test process ends.
    pub fn start() -> Self {
        let origin = TestOrigin::start(|request, _| page(request));
        Self { address: origin.address, origin }
    }

    /// Returns the URL of a page. A page whose name ends in `bytes=N` has `N` bytes. Pages have no
    /// `ETag`.
    pub fn url(&self, page: &str) -> String {
        self.origin.url(&format!("/{page}"))
    }

    /// Returns the number of requests so far.
    pub fn asked(&self) -> u64 {
        self.origin.requests() as u64
    }
}

/// Returns the response of an [`Origin`] to a request.
fn page(request: &str) -> Vec<u8> {
    let target = request.split(' ').nth(1).unwrap_or("");
    let line = format!("the page {target}\n");
    let bytes = target.rsplit_once("bytes=").and_then(|(_, bytes)| bytes.parse().ok());
    let bytes = bytes.unwrap_or(100 * line.len());
    let mut body = line.repeat(bytes / line.len() + 1);
    body.truncate(bytes);
    ok("Content-Type: text/plain\r\nCache-Control: max-age=3600\r\n", body.as_bytes())
}
