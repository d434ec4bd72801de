//! Converts the backends of HAProxy into origins.

use super::super::report::ImportReason;
use super::super::terms::written;
use super::lines::HaproxySection;
use super::{HaproxyImport, time};
use toml::Table;

impl HaproxyImport {
    /// Converts a backend to an entry of `[[origin]]`. The caller adds its name, hosts and path.
    /// Returns `None` if the backend has no usable server.
    pub(super) fn origin(&mut self, backend: &HaproxySection) -> Option<Table> {
        let lines = self.settings_of(backend);
        let mut servers = Vec::new();
        let (mut is_checked, mut header) = (false, None);
        for line in backend.lines.iter().filter(|line| line.starts(&["server"])) {
            if line.has("disabled") {
                continue;
            }
            if line.has("backup") {
                let text = "foxy has no servers that only help out; this server is left out";
                self.draft.leave(&line.original, ImportReason::Differs(text.into()));
                continue;
            }
            is_checked |= line.has("check");
            let versions = [("send-proxy", "v1"), ("send-proxy-v2", "v2")];
            let version = versions.iter().find(|(word, _)| line.has(word));
            header = header.or(version.map(|(_, version)| *version));
            let scheme = if line.has("ssl") { "https" } else { "http" };
            servers.push(format!("{scheme}://{}", line.argument(1)));
            for (name, text) in [
                ("weight", "foxy takes the less busy of two random servers, without weights"),
                ("maxconn", "foxy limits no connections of a server"),
                ("ca-file", "write the file as `ca` of the origin"),
            ] {
                if line.has(name) {
                    self.draft.leave(&line.original, ImportReason::Differs(text.into()));
                }
            }
            if line.option("verify") == Some("none") {
                let text = "foxy always verifies the origin's certificate";
                self.draft.leave(&line.original, ImportReason::Differs(text.into()));
            }
        }
        if servers.is_empty() {
            return None;
        }
        let mut origin = Table::from_iter([("servers".to_owned(), written(&servers))]);
        let checked = lines.iter().filter(|_| is_checked);
        let probe = checked.clone().find_map(|line| match line.words.as_slice() {
            [option, httpchk, rest @ ..] if option == "option" && httpchk == "httpchk" => {
                rest.iter().find(|word| word.starts_with('/')).cloned()
            }
            [check, send, ..] if check == "http-check" && send == "send" => {
                line.option("uri").map(ToOwned::to_owned)
            }
            _ => None,
        });
        origin.extend(header.map(|version| ("proxy-protocol".to_owned(), version.into())));
        origin.extend(probe.map(|path| ("probe".to_owned(), path.into())));
        for (name, key) in [("connect", "connect-timeout"), ("server", "head-timeout")] {
            let line = lines.iter().find(|line| line.starts(&["timeout", name]));
            let time = line.and_then(|line| time(line.argument(1)));
            origin.extend(time.map(|time| (key.to_owned(), time.into())));
        }
        Some(origin)
    }
}
