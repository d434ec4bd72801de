//! Prints the start-up message. It shows addresses, stores and files, and the commands that a new
//! user may try next.

use crate::settings::Settings;
use crate::settings::listen_address::ListenAddress;
use crate::settings::values::Output;
use foxy_base::ByteSize;
use foxy_proxy::server::listener::ListenerKind;
use foxy_schemes::SchemeName;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub struct OpenStore {
    pub folder: PathBuf,
    pub size: ByteSize,
    pub scheme: SchemeName,
    /// Name of the device, such as io_uring, with which the store reads and writes its disk.
    pub device: String,
}

/// Contents of the start-up message.
pub struct Welcome<'a> {
    pub settings: &'a Settings,
    /// Path of the configuration file that foxy has read, if any.
    pub file: Option<&'a Path>,
    /// Addresses of the proxy. A port that the system chose replaces port 0.
    pub proxy: &'a [(ListenAddress, ListenerKind)],
    pub admin: &'a [ListenAddress],
    pub stores: &'a [OpenStore],
    /// A line about each parent proxy.
    pub parents: &'a [String],
}

impl Welcome<'_> {
    pub fn message(&self) -> String {
        let access = &self.settings.access;
        let mut text = format!("foxy {} is ready\n", env!("CARGO_PKG_VERSION"));
        let mut row = |name: &str, value: String| {
            writeln!(text, "  {name:<11} {value}").expect("a String takes all");
        };
        for (address, kind) in self.proxy {
            match kind {
                ListenerKind::Plain => {
                    row("proxy", format!("{} ({})", url("http", address), self.role()));
                }
                ListenerKind::Tls => {
                    row("proxy", format!("{} ({})", url("https", address), self.role()));
                }
                ListenerKind::Transparent => {
                    let mode = self.settings.network.transparent_mode;
                    row("transparent", format!("{address} ({mode})"));
                }
                ListenerKind::Nodes => {
                    let name = self.settings.fleet.node.as_deref().unwrap_or_default();
                    row("fleet", format!("{} (node {name})", url("https", address)));
                }
            }
        }
        for parent in self.parents {
            row("parent", parent.clone());
        }
        for address in self.admin {
            let admin = url("http", address);
            row("admin", format!("{admin}/ (dashboard), {admin}/metrics, {admin}/healthz"));
        }
        if self.admin.is_empty() {
            row("admin", "off".into());
        }
        for OpenStore { folder, size, scheme, device } in self.stores {
            row("store", format!("{} ({size}, {scheme}, {device})", folder.display()));
        }
        if self.stores.is_empty() {
            row("store", "none; responses are kept in memory only".into());
        }
        if let Some(folder) = &access.intercept_ca
            && !access.intercept_hosts.is_empty()
        {
            row("intercepts", self.intercepts(folder));
        }
        if let Some(directory) = &self.settings.acme.directory {
            let names = self.settings.acme_names().join(", ");
            row("acme", format!("certificates for {names} from {directory}"));
        }
        row("memory", format!("{} for responses", self.settings.memory.size));
        row("workers", self.settings.network.workers.to_string());
        row("access log", self.access_log());
        match self.file {
            Some(file) => row("settings", format!("{} (foxy check prints all)", file.display())),
            None => row("settings", "command line and defaults; no file was found".into()),
        }
        text + &self.next_step()
    }

    fn role(&self) -> String {
        let names: Vec<_> = self.settings.origins.iter().map(|it| it.name.as_str()).collect();
        match &self.settings.network.origin {
            Some(origin) => format!("reverse proxy for {origin}"),
            None if !names.is_empty() => format!("reverse proxy for {}", names.join(", ")),
            None if self.settings.access.allow_destination.is_empty() => {
                "forward proxy to public addresses".into()
            }
            None => "forward proxy to public and allowed addresses".into(),
        }
    }

    /// Describes for which hosts and clients foxy intercepts TLS, and with which authority.
    fn intercepts(&self, authority: &Path) -> String {
        const MAX_SHOWN: usize = 5;
        let hosts = &self.settings.access.intercept_hosts;
        let mut names: Vec<String> =
            hosts.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
        if hosts.len() > MAX_SHOWN {
            names.push(format!("{} more (foxy check prints all)", hosts.len() - MAX_SHOWN));
        }
        let plain = self.proxy.iter().filter(|(_, kind)| *kind == ListenerKind::Plain);
        let listen: Vec<_> = plain.map(|(address, _)| url("http", address)).collect();
        let (names, listen) = (names.join(", "), listen.join(" and "));
        format!(
            "HTTPS to {names}, for every client of {listen} (authority {})",
            authority.display()
        )
    }

    fn access_log(&self) -> String {
        let format = self.settings.operation.access_log_format;
        match &self.settings.operation.access_log {
            Output::Off => "off".into(),
            Output::Standard => format!("standard output ({format})"),
            Output::File(path) => format!("{} ({format})", path.display()),
        }
    }

    fn next_step(&self) -> String {
        let is_reverse = self.settings.is_reverse();
        let address = self.proxy.iter().find(|(address, kind)| {
            *kind == ListenerKind::Plain
                && (is_reverse || !matches!(address, ListenAddress::Unix(_)))
        });
        let command = match address {
            Some((ListenAddress::Unix(path), _)) => {
                format!(
                    "curl -sD - -o /dev/null --unix-socket {} http://localhost/",
                    path.display()
                )
            }
            Some((address, _)) if is_reverse => {
                format!("curl -sD - -o /dev/null http://{address}/")
            }
            Some((address, _)) => {
                format!("curl -sD - -o /dev/null -x http://{address} http://example.com/")
            }
            None => return String::new(),
        };
        format!(
            "Type this twice and look at Cache-Status, first a miss that is stored, then a hit:\n  \
             {command}"
        )
    }
}

/// Returns the URL of a listener. For a Unix socket, returns its path.
fn url(scheme: &str, address: &ListenAddress) -> String {
    match address {
        ListenAddress::Unix(_) => address.to_string(),
        _ => format!("{scheme}://{address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;
    use foxy_cli::machine::Machine;

    #[test]
    fn the_message_names_intercepted_hosts_and_clients() {
        let hosts =
            |hosts: &str| message(&format!("intercept-ca = \"/ca\"\nintercept-hosts = [{hosts}]"));
        let text = hosts("\"a.test\", \"*.b.test\"");
        let expected = "intercepts  HTTPS to a.test, *.b.test, for every client of \
        http://127.0.0.1:4000 (authority /ca)";
        assert!(text.contains(expected), "{text}");
        let text = hosts("\"a.test\", \"b.test\", \"c.test\", \"d.test\", \"e.test\", \"f.test\"");
        assert!(text.contains("e.test, 1 more (foxy check prints all), for every"), "{text}");
        assert!(!message("memory = \"64M\"").contains("intercepts"));
    }

    fn message(file: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("foxy.toml");
        std::fs::write(&path, file).expect("written");
        let machine = Machine { cores: 2, ..Machine::default() };
        let loaded =
            settings::load(Some(&path), None, &machine).unwrap_or_else(|all| panic!("{all}"));
        let store = OpenStore {
            folder: "/s".into(),
            size: ByteSize(1 << 30),
            scheme: SchemeName::StreamPacketizer,
            device: "io_uring".into(),
        };
        let opened = Welcome {
            settings: &loaded.settings,
            file: Some(Path::new("/etc/foxy/foxy.toml")),
            proxy: &[("127.0.0.1:4000".parse().expect("an address"), ListenerKind::Plain)],
            admin: &loaded.settings.network.admin,
            stores: &[store],
            parents: &["http://***@p.test:3128 (https_proxy)".into()],
        };
        opened.message()
    }

    #[test]
    fn the_message_names_every_part_and_the_next_command() {
        let text = message("memory = \"64M\"");
        for part in [
            "proxy       http://127.0.0.1:4000 (forward proxy to public addresses)",
            "admin       http://127.0.0.1:3129/ (dashboard), http://127.0.0.1:3129/metrics, \
             http://127.0.0.1:3129/healthz",
            "parent      http://***@p.test:3128 (https_proxy)",
            "store       /s (1 GiB, stream-packetizer, io_uring)",
            "memory      64 MiB for responses",
            "access log  standard output (squid)",
            "settings    /etc/foxy/foxy.toml",
            "curl -sD - -o /dev/null -x http://127.0.0.1:4000 http://example.com/",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn the_next_command_for_a_reverse_proxy_has_no_proxy_flag() {
        let text =
            message("origin = \"http://127.0.0.1:8080\"\nadmin = \"off\"\naccess-log = \"off\"");
        assert!(text.contains("reverse proxy for http://127.0.0.1:8080"), "{text}");
        assert!(text.ends_with("curl -sD - -o /dev/null http://127.0.0.1:4000/"), "{text}");
    }
}
