//! A Redis server of the test's own, on loopback, with its own folder.

use foxy_testkit::ports::free_address;
use foxy_testkit::wait::until;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Key of the stream with the purges.
pub const LOG: &str = "{foxy-fleet}:purges";

pub struct Redis {
    folder: TempDir,
    pub address: SocketAddr,
    fsync: &'static str,
    child: Option<Child>,
}

impl Redis {
    /// Returns `None` if the machine has no `redis-server`.
    pub fn start(fsync: &'static str) -> Option<Self> {
        let is_there = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
        is_there.ok().filter(|status| status.success())?;
        let folder = tempfile::tempdir().expect("a folder");
        let mut redis = Self { folder, address: free_address(), fsync, child: None };
        redis.restart();
        Some(redis)
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Starts the server again, with what its disk has.
    pub fn restart(&mut self) {
        let port = self.address.port().to_string();
        let child = Command::new("redis-server")
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--dir"])
            .arg(self.folder.path())
            .args(["--appendonly", "yes", "--appendfsync", self.fsync])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts");
        self.child = Some(child);
        until("the start of redis-server", || {
            let stream = TcpStream::connect(self.address).ok()?;
            (command(stream, &["PING"]) == "+PONG").then_some(())
        });
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a running child");
            child.wait().expect("a child");
        }
    }

    /// Kills the server, and removes everything from its disk.
    pub fn kill_and_wipe(&mut self) {
        self.kill();
        std::fs::remove_dir_all(self.folder.path().join("appendonlydir")).expect("removed");
    }

    /// Runs a command. Returns the first line of the answer.
    pub fn run(&self, words: &[&str]) -> String {
        command(TcpStream::connect(self.address).expect("connected"), words)
    }

    /// Takes the entry at a position out of the log.
    pub fn remove(&self, position: u64) -> bool {
        self.run(&["XDEL", LOG, &format!("{position}-0")]) == ":1"
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

fn command(mut stream: TcpStream, words: &[&str]) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("set");
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        text += &format!("${}\r\n{word}\r\n", word.len());
    }
    let mut line = String::new();
    if stream.write_all(text.as_bytes()).is_ok() {
        let _ = BufReader::new(&stream).read_line(&mut line);
    }
    line.trim_end().to_owned()
}
