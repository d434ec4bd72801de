//! A NATS server of the test's own, with its own folder. `FOXY_NATS_SERVER` names another program
//! than the program that `cargo xtask tools` installs.

use crate::ground::{ENGINE, Ground};
use crate::support::commands::signal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use foxy_testkit::wait::until;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The stream with the purges, and the subject of its messages.
const LOG: &str = "foxy-fleet_purges";
const ENTRIES: &str = "foxy-fleet.purges";
/// Largest number of entries that are left after a rollback.
const LEFT: u64 = 50;
const USER: &str = "fleet";
/// The service that tells the settings of JetStream.
const SETTINGS: &str = "$SYS.REQ.SERVER.PING.JSZ";

pub struct Nats {
    folder: TempDir,
    ground: Arc<Ground>,
    program: PathBuf,
    address: SocketAddr,
    sync: &'static str,
    password: Option<String>,
    child: Option<Child>,
}

fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("FOXY_NATS_SERVER") {
        return Some(named.into());
    }
    let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("tools");
    Some(tools.join("python/bin/nats-server")).filter(|program| program.exists())
}

impl Nats {
    /// Starts a server at the engine's place. Returns `None` if the machine has no `nats-server`.
    pub fn start_on(ground: &Arc<Ground>, is_durable: bool) -> Option<Self> {
        let (program, folder) = (program()?, tempfile::tempdir().expect("a folder"));
        let (ground, address) = (Arc::clone(ground), ground.engine());
        let sync = if is_durable { "always" } else { "2m" };
        let (password, child) = (None, None);
        let mut nats = Self { folder, ground, program, address, sync, password, child };
        nats.restart();
        Some(nats)
    }

    pub fn url(&self, login: &str) -> String {
        format!("nats://{login}{}", self.ground.engine_for_nodes())
    }

    pub fn require_password(&mut self, password: &str) -> String {
        self.password = Some(password.to_owned());
        self.kill();
        self.restart();
        format!("{USER}:{password}")
    }

    /// Returns the configuration. The fleet's account may ask for the settings of JetStream.
    fn configuration(&self) -> String {
        let has_links = self.ground.has_links();
        let host = if has_links { "0.0.0.0".to_owned() } else { self.address.ip().to_string() };
        let (port, sync, folder) = (self.address.port(), self.sync, self.folder.path().display());
        let (password, default) = match &self.password {
            Some(password) => (password.as_str(), String::new()),
            None => ("x", format!("no_auth_user: {USER}\n")),
        };
        format!(
            "listen: \"{host}:{port}\"\n\
             jetstream {{ store_dir: \"{folder}/data\", sync_interval: {sync} }}\n\
             accounts {{\n\
               SYS {{ exports: [{{ service: \"{SETTINGS}\" }}] }}\n\
               FLEET {{\n\
                 jetstream: enabled, users: [{{ user: {USER}, password: \"{password}\" }}],\n\
                 imports: [{{ service: {{ account: SYS, subject: \"{SETTINGS}\" }} }}]\n\
               }}\n\
             }}\n\
             system_account: SYS\n{default}"
        )
    }

    pub fn restart(&mut self) {
        let path = self.folder.path().join("nats.conf");
        std::fs::write(&path, self.configuration()).expect("written");
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(path).stdin(Stdio::null()).stdout(Stdio::null());
        let mut command = self.ground.command(ENGINE, command);
        self.child = Some(command.stderr(Stdio::null()).spawn().expect("nats-server starts"));
        until("the start of nats-server", || {
            let mut client = self.client()?;
            client.ask("$JS.API.INFO", "", b"")?["limits"].is_object().then_some(())
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
        std::fs::remove_dir_all(self.folder.path().join("data")).expect("removed");
    }

    fn client(&self) -> Option<Client> {
        Client::connect(self.address, self.password.as_deref())
    }

    /// Sends a request of JetStream's API about the log.
    fn api(&self, api: &str, body: &Value) -> Value {
        let subject = format!("$JS.API.STREAM.{api}.{LOG}");
        let answer = || self.client()?.ask(&subject, "", body.to_string().as_bytes());
        answer().unwrap_or_default()
    }

    pub fn remove(&self, position: u64) -> bool {
        self.api("MSG.DELETE", &json!({ "seq": position }))["success"] == true
    }

    pub fn tail(&self) -> u64 {
        self.api("INFO", &json!({}))["state"]["last_seq"].as_u64().unwrap_or(0)
    }

    pub fn remove_last(&self, after: u64, most: u64, is_rolled_back: bool) -> u64 {
        let tail = self.tail();
        let last = (after + 1..=tail).rev().take(usize::try_from(most).expect("small"));
        let removed = last.filter(|position| self.remove(*position)).count() as u64;
        if removed > 0 && is_rolled_back {
            self.create_again(tail - removed);
        }
        removed
    }

    /// Replaces the log by another log, which has some of the same entries up to `end`. Nodes may
    /// create the log at the same time. Then it loses all entries.
    fn create_again(&self, end: u64) {
        let first = end.saturating_sub(LEFT).max(1);
        let got = |position| self.api("MSG.GET", &json!({ "seq": position }));
        let left: Vec<Value> = (first..=end).map(got).collect();
        let info = self.api("INFO", &json!({}));
        let mut config = info["config"].clone();
        config["first_seq"] = json!(first);
        self.api("DELETE", &json!({}));
        self.api("CREATE", &config);
        for (position, got) in (first..=end).zip(left) {
            let data =
                STANDARD.decode(got["message"]["data"].as_str().unwrap_or("")).expect("sound");
            let header = format!("Nats-Expected-Last-Sequence: {}\r\n", position - 1);
            self.client().and_then(|mut client| client.ask(ENTRIES, &header, &data));
        }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A connection with one request at a time.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(to: SocketAddr, password: Option<&str>) -> Option<Self> {
        let stream = TcpStream::connect(to).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("set");
        let mut reader = BufReader::new(stream);
        reader.read_line(&mut String::new()).ok()?;
        let mut login = json!({ "verbose": false, "headers": true, "no_responders": true });
        if let Some(password) = password {
            (login["user"], login["pass"]) = (json!(USER), json!(password));
        }
        let text = format!("CONNECT {login}\r\nSUB answer 1\r\n");
        reader.get_mut().write_all(text.as_bytes()).ok()?;
        Some(Self(reader))
    }

    /// Sends a request. Returns the answer, if it is in JSON.
    fn ask(&mut self, subject: &str, header: &str, body: &[u8]) -> Option<Value> {
        let head = format!("NATS/1.0\r\n{header}\r\n");
        let (head_length, length) = (head.len(), head.len() + body.len());
        let mut text =
            format!("HPUB {subject} answer {head_length} {length}\r\n{head}").into_bytes();
        text.extend_from_slice(body);
        text.extend_from_slice(b"\r\n");
        self.0.get_mut().write_all(&text).ok()?;
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).ok().filter(|read| *read > 0)?;
            let words: Vec<&str> = line.split_whitespace().collect();
            match *words.first()? {
                "PING" => self.0.get_mut().write_all(b"PONG\r\n").ok()?,
                "MSG" | "HMSG" => {
                    let mut answer = vec![0; words.last()?.parse::<usize>().ok()? + 2];
                    self.0.read_exact(&mut answer).ok()?;
                    return serde_json::from_slice(&answer).ok();
                }
                _ => {}
            }
        }
    }
}
