//! The URL of a NATS server, and the names of a fleet's streams on the server.

use super::KEPT_ENTRIES;
use crate::purges::address::EngineCredentials;
use crate::purges::engine::EngineError;
use crate::purges::entry::Process;
use async_nats::ServerAddr;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

/// Name of the fleet if the URL contains none.
const USUAL_NAME: &str = "foxy-fleet";

/// A NATS server, and the fleet's name on it.
#[derive(Clone)]
pub struct NatsServer {
    pub(super) address: ServerAddr,
    /// The user name. If it is empty, the password is a token.
    pub(super) user: String,
    pub(super) password: String,
    pub(super) names: Names,
}

fn unusable(what: &str) -> EngineError {
    EngineError::BadAddress(format!("{what} is unusable"))
}

fn decode(text: &str) -> Result<String, EngineError> {
    let text = percent_decode_str(text).decode_utf8().map_err(|_| unusable("the password"))?;
    Ok(text.into_owned())
}

impl NatsServer {
    /// Reads the URL of a NATS server, such as `nats://127.0.0.1:4222/NAME`. The scheme `tls`
    /// instead of `nats` demands TLS. `credentials` apply if the URL contains no password.
    ///
    /// # Errors
    /// Returns an error if the URL is unusable. The error does not repeat the URL, because the URL
    /// may contain a password.
    pub fn new(url: &str, credentials: Option<&EngineCredentials>) -> Result<Self, EngineError> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| unusable("the scheme"))?;
        let (login, place) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (host, name) = place.split_once('/').unwrap_or((place, ""));
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        if !name.chars().all(is_plain) {
            return Err(unusable("the fleet's name"));
        }
        let address = format!("{scheme}://{host}").parse::<ServerAddr>().ok();
        let address = address.filter(|_| !host.is_empty() && !host.contains(['?', '#']));
        let (user, password) = match (login.split_once(':'), credentials) {
            (Some((user, password)), _) => (decode(user)?, decode(password)?),
            (None, Some(known)) if login.is_empty() => (known.user.clone(), known.password.clone()),
            (None, _) => (String::new(), decode(login)?),
        };
        Ok(Self {
            address: address.ok_or_else(|| unusable("the host or the port"))?,
            user,
            password,
            names: Names::new(if name.is_empty() { USUAL_NAME } else { name }),
        })
    }
}

/// The names of a fleet's streams and subjects on the NATS server.
#[derive(Clone)]
pub(super) struct Names {
    /// The stream with the entries of the purge log.
    pub log: String,
    /// The subject to which members publish new entries of the purge log.
    pub entries: String,
    /// The subject to which the server publishes a notice of each entry that it has stored.
    pub stored: String,
    /// The stream with the records of the members' processes.
    pub records: String,
    /// The first part of the subject of each record.
    members: String,
}

impl Names {
    fn new(fleet: &str) -> Self {
        Self {
            log: format!("{fleet}_purges"),
            entries: format!("{fleet}.purges"),
            stored: format!("{fleet}.stored"),
            records: format!("{fleet}_members"),
            members: format!("{fleet}.members"),
        }
    }

    /// Returns the subject of a process's record. The subject has a hash of the process's name,
    /// because a name may contain characters that a subject must not contain.
    pub fn record(&self, process: &Process) -> String {
        format!("{}.{:032x}", self.members, xxh3_128(process.to_string().as_bytes()))
    }

    /// Returns the configuration of the stream with the purge log.
    pub fn log_config(&self) -> Value {
        json!({
            "name": self.log, "subjects": [self.entries], "storage": "file",
            "retention": "limits", "discard": "old", "max_msgs": KEPT_ENTRIES,
            "num_replicas": 1, "allow_rollup_hdrs": true,
            "republish": { "src": self.entries, "dest": self.stored, "headers_only": true },
        })
    }

    /// Returns the configuration of the stream with the processes' records.
    pub fn records_config(&self) -> Value {
        json!({
            "name": self.records, "subjects": [format!("{}.*", self.members)],
            "storage": "memory", "retention": "limits", "discard": "old",
            "max_msgs_per_subject": 1, "num_replicas": 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Option<(String, String, String)> {
        let known = EngineCredentials::read("known:word");
        let server = NatsServer::new(url, known.as_ref()).ok()?;
        Some((server.user, server.password, server.names.log))
    }

    #[test]
    fn a_url_names_the_login_and_the_fleet() {
        for (url, user, password, log) in [
            ("nats://a.test", "known", "word", "foxy-fleet_purges"),
            ("tls://u:p%40@a.test:1/x-1", "u", "p@", "x-1_purges"),
            ("nats://word@[::1]:4222/", "", "word", "foxy-fleet_purges"),
        ] {
            let found = read(url).map(|(user, password, log)| [user, password, log].join(" "));
            assert_eq!(found, Some(format!("{user} {password} {log}")), "{url}");
        }
    }

    #[test]
    fn an_unusable_url_is_refused_without_its_password() {
        for url in ["nats://", "nats://a.test:s3cret", "nats://a:s3cret@b/x.y", "nats://a?s3cret"] {
            let error = NatsServer::new(url, None).err().expect("refused").to_string();
            assert!(error.ends_with("is unusable") && !error.contains("s3cret"), "{error}");
        }
    }
}
