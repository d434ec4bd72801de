//! Reads the shell commands in documents, and runs them as a user would paste them.

use crate::support::commands::Serving;
use foxy_testkit::ports::free_ports;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A code block of shell commands in a document.
pub struct Block {
    /// The number of the line where the block begins.
    pub line: usize,
    /// The word after `sh`, if the block cannot run in a test.
    pub mark: Option<String>,
    pub script: String,
}

/// Returns the `sh` code blocks of a document, in order.
pub fn blocks(text: &str) -> Vec<Block> {
    let (mut blocks, mut open) = (Vec::new(), None);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        match &mut open {
            Some(_) if line == "```" => blocks.extend(open.take()),
            Some(Block { script, .. }) => writeln!(script, "{line}").expect("a String takes all"),
            None => {
                let mark = line.strip_prefix("```sh").map(str::trim);
                open = mark.map(|mark| Block {
                    line: number,
                    mark: (!mark.is_empty()).then(|| mark.to_owned()),
                    script: String::new(),
                });
            }
        }
    }
    blocks
}

/// Text that precedes a port in the README.
const HOST: &str = "127.0.0.1:";

/// Returns the port number at the start of a text, if any.
fn port(text: &str) -> Option<u16> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Replacements for things that a document names. A free port replaces each port, a folder `/tmp`,
/// `/etc` and `/var`, and a local page example.com.
pub struct Stage {
    folder: tempfile::TempDir,
    ports: BTreeMap<u16, u16>,
    page: Serving,
}

impl Stage {
    /// Prepares the replacements for the document `text`. `more` is added to the settings of the
    /// user.
    pub fn set(text: &str, more: &str) -> Self {
        let named = text.split(HOST).skip(1).filter_map(port);
        let named: BTreeSet<u16> = named.collect();
        let ports = named.into_iter().map(|port| (port, free_ports(1))).collect();
        let stage =
            Self { folder: tempfile::tempdir().expect("a folder"), ports, page: Serving::origin() };
        let builds = ["checkout/target/quick", "checkout/target/release"];
        let others = ["settings/foxy", "tmp", "etc/foxy", "etc/squid", "var/cache"];
        for folder in builds.into_iter().chain(others) {
            std::fs::create_dir_all(stage.path(folder)).expect("made");
        }
        for build in builds {
            let binary = stage.path(build).join("foxy");
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_foxy"), binary).expect("linked");
        }
        // The local page is on this machine, so foxy needs a setting that allows this destination.
        let settings = stage.played(
            "listen = \"127.0.0.1:3128\"\nadmin = \"127.0.0.1:3129\"\nallow-destination = [\"127.0.0.0/8\"]\n\
             size = \"64M\"\nmemory = \"16M\"\n",
        );
        let settings = settings + &stage.played(more);
        std::fs::write(stage.path("settings/foxy/foxy.toml"), settings).expect("written");
        stage
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a text of the document with all replacements.
    pub fn played(&self, text: &str) -> String {
        let mut parts = text.split(HOST);
        let mut played = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            played += HOST;
            match port(part).and_then(|port| self.ports.get(&port)) {
                Some(port) => {
                    let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
                    played += &format!("{port}{rest}");
                }
                None => played += part,
            }
        }
        for (port, own) in &self.ports {
            let flag = |port: &u16| format!("--connect-port {port}");
            played = played.replace(&flag(port), &flag(own));
        }
        let page = format!("http://{}/o/1/1000/1", self.page.address);
        let played = played.replace("http://example.com/", &page);
        [" /tmp/", " /etc/foxy", " /etc/squid", " /var/cache/foxy", "\"/etc/foxy"].into_iter().fold(
            played,
            |played, place| {
                let (before, path) = place.split_at(1);
                let path = self.path(path.trim_start_matches('/'));
                let end = if place.ends_with('/') { "/" } else { "" };
                let own = format!("{before}{}{end}", path.display());
                played.replace(place, &own)
            },
        )
    }

    /// Prepares a shell that starts in the repository, in its own process group.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        let folder = self.path("checkout/target/release");
        command.args(["-c", script]).current_dir(self.path("checkout")).process_group(0);
        command
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display()))
            .env("HOME", self.folder.path());
        command.env("XDG_CONFIG_HOME", self.path("settings")).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a script to its end, and returns its output. Panics if a command of the script fails.
    pub fn paste(&self, script: &str) -> String {
        let output = self.path("output");
        let script = format!("exec >'{}' 2>&1; set -exo pipefail\n{script}", output.display());
        let mut shell = Terminal(self.shell(&script).spawn().expect("bash runs"));
        let status = shell.0.wait().expect("a child");
        let said = std::fs::read_to_string(output).expect("text");
        assert!(status.success(), "{status}:\n{said}");
        said
    }
}

/// A running shell. Drop ends its whole process group.
pub struct Terminal(pub Child);

impl Drop for Terminal {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _none_left =
            Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ended_already = self.0.wait();
    }
}
