//! A DNS server of the test's own: dnsmasq, with records that a test changes.

use crate::support::not_run;
use foxy_testkit::ports::free_address;
use foxy_testkit::wait::until;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = "/usr/sbin/dnsmasq";

pub struct NameServer {
    pub address: SocketAddr,
    child: Option<Child>,
}

impl NameServer {
    /// Starts a server with these options for records. Returns `None` if the machine has no
    /// dnsmasq.
    pub fn start(records: &[String]) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            not_run(
                "members by DNS",
                "the machine has no dnsmasq; `cargo xtask tools` installs it",
            );
            return None;
        }
        let mut server = Self { address: free_address(), child: None };
        server.restart(records);
        Some(server)
    }

    /// Starts the server again, with other records. All records have a TTL of 0 s.
    pub fn restart(&mut self, records: &[String]) {
        self.kill();
        let (host, port) = (self.address.ip(), self.address.port());
        let mut command = Command::new(PROGRAM);
        command.args(["--keep-in-foreground", "--conf-file=/dev/null", "--pid-file", "--user="]);
        command.args(["--no-resolv", "--no-hosts", "--bind-interfaces", "--local=/test/"]);
        command.args([format!("--listen-address={host}"), format!("--port={port}")]);
        command.args(records).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null());
        self.child = Some(command.spawn().expect("dnsmasq starts"));
        until("the start of dnsmasq", || TcpStream::connect(self.address).ok());
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a running child");
            child.wait().expect("a child");
        }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.kill();
    }
}
