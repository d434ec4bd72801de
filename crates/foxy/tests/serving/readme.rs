//! Tests the first steps in the README. Runs the steps in order, while processes of earlier steps
//! still run. Replaces ports, the temporary folder and the page of example.com, and pastes
//! everything else unchanged.

use crate::support::commands::{Serving, signal};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the `sh` code blocks of a section, in order. Blocks that need the network have another
/// word after `sh` and are left out.
fn blocks(text: &str, section: &str) -> Vec<String> {
    let (_, section) = text.split_once(&format!("\n## {section}\n")).expect("the section is there");
    let section = section.split("\n## ").next().expect("a section");
    let (mut blocks, mut open) = (Vec::new(), None);
    for line in section.lines().map(str::trim_start) {
        match (&mut open, line) {
            (None, "```sh") => open = Some(String::new()),
            (Some(_), "```") => blocks.extend(open.take()),
            (Some(block), line) => writeln!(block, "{line}").expect("a String takes all"),
            (None, _) => {}
        }
    }
    blocks
}

/// Text that precedes a port in the README.
const HOST: &str = "127.0.0.1:";

/// Returns the port number at the start of a text, if there is one.
fn port(text: &str) -> Option<u16> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Replacements for things that the README names: a free port for each port, a folder for `/tmp`,
/// and a local page for example.com.
struct Stage {
    folder: tempfile::TempDir,
    ports: BTreeMap<u16, u16>,
    page: Serving,
}

impl Stage {
    fn set(readme: &str) -> Self {
        let named = readme.split(HOST).skip(1).filter_map(port);
        let held: BTreeMap<u16, TcpListener> = named
            .map(|port| (port, TcpListener::bind("127.0.0.1:0").expect("a free port")))
            .collect();
        let number = |listener: &TcpListener| listener.local_addr().expect("an address").port();
        let ports = held.iter().map(|(&port, listener)| (port, number(listener))).collect();
        let stage =
            Self { folder: tempfile::tempdir().expect("a folder"), ports, page: Serving::origin() };
        let builds = ["checkout/target/quick", "checkout/target/release"];
        for folder in builds.into_iter().chain(["settings/foxy", "tmp"]) {
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
        std::fs::write(stage.path("settings/foxy/foxy.toml"), settings).expect("written");
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a text of the README with all replacements.
    fn played(&self, text: &str) -> String {
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
        let page = format!("http://{}/o/1/1000/1", self.page.address);
        let temporary = format!("{}/", self.path("tmp").display());
        played.replace("http://example.com/", &page).replace("/tmp/", &temporary)
    }

    /// Prepares a shell that starts in the repository, in its own process group.
    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", script]).current_dir(self.path("checkout")).process_group(0);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.folder.path());
        command.env("XDG_CONFIG_HOME", self.path("settings")).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a script to its end, and returns its output. Panics if a command of the script fails.
    fn paste(&self, script: &str) -> String {
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
struct Terminal(Child);

impl Drop for Terminal {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _none_left =
            Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ended_already = self.0.wait();
    }
}

/// Returns the command that `make run` starts, with the tested binary instead of a new build.
fn make_run() -> String {
    let makefile = read("Makefile");
    let (_, recipe) = makefile.split_once("\nrun:\n\t").expect("a target `run`");
    let recipe = recipe.lines().next().expect("a recipe");
    let (build, arguments) = recipe.split_once(" -- ").expect("arguments of foxy");
    assert!(build.starts_with("cargo run --profile quick --bin foxy "), "{recipe}");
    format!("exec target/quick/foxy {arguments}")
}

#[test]
fn each_step_of_the_readme_works_when_it_is_pasted_in_order() {
    let readme = read("README.md");
    let steps = blocks(&readme, "The first five minutes");
    assert!(steps.len() >= 6 && steps[0] == "make run\n", "{steps:?}");
    let stage = Stage::set(&readme);

    let mut first = Terminal(stage.shell(&make_run()).spawn().expect("bash runs"));
    let mut reports = BufReader::new(first.0.stderr.take().expect("piped"));
    let mut welcome = String::new();
    while !welcome.contains("\n  curl ") {
        assert!(
            reports.read_line(&mut welcome).expect("text") > 0,
            "foxy did not start: {welcome}"
        );
    }
    // The start-up message must name the proxy's port as in the README, and the command to try
    // next.
    let proxy = format!("  proxy       {}", stage.played("http://127.0.0.1:3128"));
    assert!(welcome.contains(&proxy), "{welcome}");
    let next = welcome.lines().last().expect("what to type next");
    let page = stage.played("http://example.com/");
    let typed = next.replace("http://example.com/", &page.replace("/o/1/", "/o/2/"));
    let said = stage.paste(&format!("{typed}\n{typed}"));
    assert!(said.contains("Cache-Status: foxy; fwd=uri-miss; fwd-status=200; stored"), "{said}");
    assert!(said.contains("Cache-Status: foxy; hit; ttl="), "{said}");

    let script: String = steps[1..].iter().map(|step| stage.played(step)).collect();
    let said = stage.paste(&script);
    for promised in ["foxy; fwd=uri-miss; fwd-status=200; stored", "foxy; hit; ttl="] {
        assert!(readme.contains(&format!("`{promised}")), "{promised}");
        assert!(said.contains(&format!("Cache-Status: {promised}")), "{said}");
    }
    let wrong = said.lines().find(|line| line.starts_with("wrong_bytes ")).expect("a load was run");
    assert_eq!(wrong.split_whitespace().nth(1), Some("0"), "{said}");
    let left: Vec<_> = std::fs::read_dir(stage.path("tmp")).expect("there").flatten().collect();
    assert!(left.is_empty(), "the last step removes what the others made: {left:?}");

    signal(first.0.id(), "TERM");
    assert!(first.0.wait().expect("a child").success());
}
