//! The foxy under test: its first process, and the processes that upgrades start.

use crate::support::black_box::{BlackBox, binary};
use crate::support::write_secret;
use foxy_testkit::certificates::TestAuthority;
use foxy_testkit::ports::free_address;
use foxy_testkit::wait::PATIENCE;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

const RULE: &str = "[[rule]]\nname = \"closed\"\nwhen = { path = \"/page/closed\" }\n\
                    then = { access = \"deny\" }\n";
const MISTAKE: &str = "[[rule]]\nwhen = { path = \"/*\" }\nthen = { acess = \"deny\" }\n";

/// The content of foxy's configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Every client may request every page.
    Open,
    /// A rule denies one page.
    Closed,
    /// A rule with an unknown word. If foxy ignored the unknown word, the rule would deny every
    /// page.
    Mistake,
}

#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    pub proxy: SocketAddr,
    pub secure: SocketAddr,
    pub admin: SocketAddr,
}

pub struct Subject {
    pub to: Addresses,
    pub authority: TestAuthority,
    first: BlackBox,
    /// The process ids of foxy's processes, oldest first.
    processes: Vec<u32>,
    folder: TempDir,
}

impl Subject {
    /// Starts foxy with an empty store of this size. Tunnels may lead to the port `echo`.
    pub fn start(size: &str, echo: u16) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = TestAuthority::new();
        let certificate = authority.sign(&["localhost"]);
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("certificate.pem"), certificate.pem()).expect("written");
        write_secret(&path("key.pem"), &certificate.key.serialize_pem());
        std::fs::write(path("foxy.toml"), "").expect("written");
        let [proxy, secure, admin] = free_addresses();
        let to = Addresses { proxy, secure, admin };
        let mut command = Command::new(binary());
        command.env_clear().args(["serve", "--workers", "2", "--memory", "8M"]);
        command.args(["--access-log", "off", "--allow-destination", "127.0.0.0/8"]);
        command.args(["--listen", &proxy.to_string(), "--listen-tls", &secure.to_string()]);
        command.args(["--admin", &admin.to_string(), "--connect-port", &echo.to_string()]);
        command.args(["--leave-after", "3h"]);
        command.arg("--tls-certificate").arg(path("certificate.pem"));
        command.arg("--tls-key").arg(path("key.pem")).arg("--config").arg(path("foxy.toml"));
        command.arg("--store").arg(path("store")).args(["--size", size]);
        let mut first = BlackBox::spawn(&mut command).expect("the binary runs");
        let ready = first.ready(PATIENCE);
        ready.unwrap_or_else(|why| panic!("foxy did not start: {why}"));
        let processes = vec![first.id()];
        Self { to, authority, first, processes, folder }
    }

    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Returns the last lines that all processes wrote to standard error.
    pub fn said(&self) -> String {
        self.first.said()
    }

    pub fn newest(&self) -> u32 {
        *self.processes.last().expect("the first")
    }

    /// Returns the processes that still run.
    pub fn running(&self) -> Vec<u32> {
        self.processes.iter().copied().filter(|process| self.is_running(*process)).collect()
    }

    /// Whether this process runs and is a foxy with the store of this test.
    pub fn is_running(&self, process: u32) -> bool {
        let arguments = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let store = self.store();
        String::from_utf8_lossy(&arguments).contains(&*store.to_string_lossy())
    }

    pub fn kill(&self, process: u32) {
        if self.is_running(process) {
            let _ended_already =
                Command::new("kill").args(["-9", &process.to_string()]).output().is_ok();
        }
    }

    pub fn write(&self, content: Content) {
        let text = match content {
            Content::Open => String::new(),
            Content::Closed => RULE.into(),
            Content::Mistake => format!("{RULE}{MISTAKE}"),
        };
        std::fs::write(self.folder.path().join("foxy.toml"), text).expect("written");
    }

    /// Runs `foxy reload`. Returns whether it succeeded.
    pub fn reload(&self) -> bool {
        self.run("reload").0
    }

    /// Runs `foxy upgrade`. Returns the time in milliseconds for which new connections waited.
    pub fn upgrade(&mut self) -> Result<u64, String> {
        let (succeeded, said) = self.run("upgrade");
        // The output is a line such as: process 123 serves now; new connections waited 45 ms
        let numbers = said.split(|c: char| !c.is_ascii_digit()).filter(|text| !text.is_empty());
        let numbers: Vec<u64> = numbers.filter_map(|text| text.parse().ok()).collect();
        match numbers[..] {
            [process, milliseconds] if succeeded => {
                self.add(u32::try_from(process).expect("a process"));
                Ok(milliseconds)
            }
            _ => Err(said),
        }
    }

    pub fn knows(&self, process: u32) -> bool {
        self.processes.contains(&process)
    }

    /// Adds a process that an upgrade started.
    pub fn add(&mut self, process: u32) {
        if !self.knows(process) {
            self.processes.push(process);
        }
    }

    /// Records that only the process `survivor` is left.
    pub fn serves_from(&mut self, survivor: u32) {
        self.processes.retain(|process| *process != survivor);
        self.processes.push(survivor);
    }

    /// Starts `foxy upgrade` without waiting for it.
    pub fn begin_upgrade(&self) -> std::process::Child {
        self.command("upgrade").spawn().expect("it runs")
    }

    fn run(&self, name: &str) -> (bool, String) {
        let output = self.command(name).output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(binary());
        command.env_clear().args([name, "--admin", &self.to.admin.to_string()]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        self.processes.iter().for_each(|process| self.kill(*process));
    }
}

/// Returns three addresses with different free ports. They are fixed, because a new process must
/// bind them again if its predecessor was killed.
fn free_addresses() -> [SocketAddr; 3] {
    [(); 3].map(|()| free_address())
}
