//! A Redis server of the test's own, with its own folder.

use crate::ground::{ENGINE, Ground};
use crate::support::commands::signal;
use foxy_testkit::wait::until;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Key of the stream with the purges.
const LOG: &str = "{foxy-fleet}:purges";

const TAIL: &str = "
    if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
    local facts = redis.call('XINFO', 'STREAM', KEYS[1])
    for i = 1, #facts, 2 do
        if facts[i] == 'last-generated-id' then return tonumber(string.match(facts[i + 1], '%d+')) end
    end";

const REMOVE_LAST: &str = "
    local last = redis.call('XREVRANGE', KEYS[1], '+', ARGV[1], 'COUNT', ARGV[2])
    for _, entry in ipairs(last) do redis.call('XDEL', KEYS[1], entry[1]) end
    if #last > 0 and ARGV[3] == '1' then
        local end_ = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
        if end_[1] then redis.call('XSETID', KEYS[1], end_[1][1]) end
    end
    return #last";

pub struct Redis {
    folder: TempDir,
    ground: Arc<Ground>,
    address: SocketAddr,
    fsync: &'static str,
    child: Option<Child>,
}

impl Redis {
    /// Starts a server at the engine's place. Returns `None` if the machine has no `redis-server`.
    pub fn start_on(ground: &Arc<Ground>, is_durable: bool) -> Option<Self> {
        let fsync = if is_durable { "always" } else { "everysec" };
        let is_there = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
        is_there.ok().filter(|status| status.success())?;
        let folder = tempfile::tempdir().expect("a folder");
        let (ground, address) = (Arc::clone(ground), ground.engine());
        let mut redis = Self { folder, ground, address, fsync, child: None };
        redis.restart();
        Some(redis)
    }

    pub fn url(&self, login: &str) -> String {
        format!("redis://{login}{}", self.ground.engine_for_nodes())
    }

    pub fn require_password(&mut self, password: &str) -> String {
        assert_eq!(self.run(&["CONFIG", "SET", "requirepass", password]), "+OK");
        format!(":{password}")
    }

    pub fn restart(&mut self) {
        let port = self.address.port().to_string();
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &port, "--protected-mode", "no", "--save", "", "--bind"])
            .args(BTreeSet::from([self.address, self.ground.engine_for_nodes()].map(host)))
            .arg("--dir")
            .arg(self.folder.path())
            .args(["--appendonly", "yes", "--appendfsync", self.fsync])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let child = self.ground.command(ENGINE, command).spawn().expect("redis-server starts");
        self.child = Some(child);
        until("the start of redis-server", || {
            let stream = TcpStream::connect(self.address).ok()?;
            (command_on(stream, &["PING"]) == "+PONG").then_some(())
        });
    }

    pub fn signal(&self, name: &str) {
        signal(self.child.as_ref().expect("a running child").id(), name);
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a running child");
            child.wait().expect("a child");
        }
    }

    pub fn kill_and_wipe(&mut self) {
        self.kill();
        std::fs::remove_dir_all(self.folder.path().join("appendonlydir")).expect("removed");
    }

    /// Runs a command. Returns the first line of the answer.
    fn run(&self, words: &[&str]) -> String {
        command_on(TcpStream::connect(self.address).expect("connected"), words)
    }

    pub fn remove(&self, position: u64) -> bool {
        self.run(&["XDEL", LOG, &format!("{position}-0")]) == ":1"
    }

    pub fn tail(&self) -> u64 {
        number(&self.run(&["EVAL", TAIL, "1", LOG]))
    }

    pub fn remove_last(&self, after: u64, most: u64, is_rolled_back: bool) -> u64 {
        let (after, most) = (format!("({after}-18446744073709551615"), most.to_string());
        let rolls_back = u64::from(is_rolled_back).to_string();
        number(&self.run(&["EVAL", REMOVE_LAST, "1", LOG, &after, &most, &rolls_back]))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

fn command_on(mut stream: TcpStream, words: &[&str]) -> String {
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

fn number(line: &str) -> u64 {
    line.strip_prefix(':').and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn host(address: SocketAddr) -> String {
    address.ip().to_string()
}
