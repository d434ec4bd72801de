//! Reads the origins of a reverse proxy: the `[[origin]]` tables of the configuration file.

use crate::settings::tables::{Parsed, Values, WrittenTable};
use crate::settings::values::origin;
use foxy_cli::units::{parse_duration, show_duration};
use foxy_http::Authority;
use foxy_proxy::core::addresses::proxy_header::HeaderVersion;
use foxy_proxy::upstream::{MAX_SERVERS, OriginHttp2, OriginServer, SentHost, ServedHost};
use serde::Deserialize;
use serde::de::{Error, IntoDeserializer};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use toml::Spanned;
use toml::de::DeValue;

/// Shortest time that a time setting of an origin accepts.
const MIN_TIME: Duration = Duration::from_millis(100);
/// Longest time that a time setting of an origin accepts.
const MAX_TIME: Duration = Duration::from_secs(86_400);
const USUAL_PROBE_INTERVAL: Duration = Duration::from_secs(2);

pub type WrittenOrigin = WrittenTable<OriginTable>;

/// A key of `[[origin]]`: its name, an example of its value in TOML, and its documentation.
pub struct OriginKey(pub &'static str, pub &'static str, pub &'static str);

pub const KEYS: &[OriginKey] = &[
    OriginKey("name", "\"shop\"", "Name in logs and metrics."),
    OriginKey(
        "hosts",
        "[\"shop.example\", \"*.shop.example\"]",
        "Hosts, or `*.` and a name for all names below it. Default: all.",
    ),
    OriginKey("path", "\"/api/\"", "Beginning of the paths. Default: all."),
    OriginKey(
        "servers",
        "[\"http://10.0.0.1:8080\", \"http://10.0.0.2:8080\"]",
        "Servers with the same content.",
    ),
    OriginKey(
        "send-host",
        "\"keep\"",
        "`Host` for the servers: `keep` (the client's), `server` (the server's), or another host.",
    ),
    OriginKey("http2", "\"auto\"", "As `origin-http2`."),
    OriginKey(
        "ca",
        "[\"/etc/foxy/inside.pem\"]",
        "Files with certificate authorities, in place of all others.",
    ),
    OriginKey(
        "client-certificate",
        "\"/etc/foxy/client.pem\"",
        "File with the certificate chain that foxy presents.",
    ),
    OriginKey("client-key", "\"/etc/foxy/client.key\"", "File with its private key."),
    OriginKey(
        "server-name",
        "\"inside.example\"",
        "Name in the server's certificate, in place of the server's host.",
    ),
    OriginKey(
        "proxy-protocol",
        "\"v2\"",
        "PROXY protocol for the servers: `v1` or `v2`. Default: none.",
    ),
    OriginKey(
        "probe",
        "\"/health\"",
        "Path of probes. 200 to 399 means healthy. While all servers are sick, foxy still asks \
         one of them.",
    ),
    OriginKey("probe-interval", "\"2s\"", "Time between two probes. Default: `2s`."),
    OriginKey("connect-timeout", "\"5s\"", "As `timeouts.connect`."),
    OriginKey("head-timeout", "\"30s\"", "As `timeouts.origin-head`."),
];

/// Returns the names of all keys of `[[origin]]`.
pub fn keys() -> Vec<&'static str> {
    KEYS.iter().map(|OriginKey(key, ..)| *key).collect()
}

/// An `[[origin]]` table: an origin with one or several servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginTable {
    pub name: String,
    pub hosts: Vec<ServedHost>,
    pub path: String,
    pub servers: Vec<OriginServer>,
    pub send_host: SentHost,
    pub http2: Option<OriginHttp2>,
    pub ca: Vec<PathBuf>,
    /// Paths of the file with the certificate chain and the file with its private key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    pub server_name: Option<String>,
    pub proxy_protocol: Option<HeaderVersion>,
    /// Path of the URL that foxy requests to probe a server, and the time between two probes.
    pub probe: Option<(String, Duration)>,
    pub connect_timeout: Option<Duration>,
    pub head_timeout: Option<Duration>,
}

/// Reads an `[[origin]]` table. `number` is its position among these tables in the file, counted
/// from 1.
pub fn read(
    value: &Spanned<DeValue<'_>>,
    number: usize,
) -> Result<(OriginTable, toml::Table), toml::de::Error> {
    let table = TableText::deserialize(value.clone().into_deserializer())?;
    let read = table.checked(number).map_err(toml::de::Error::custom)?;
    Ok((read, toml::Table::deserialize(value.clone().into_deserializer())?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TableText {
    name: Option<String>,
    #[serde(default)]
    hosts: Values<ServedHost>,
    path: Option<Parsed<PathPrefix>>,
    servers: Values<ServerUrl>,
    send_host: Option<Parsed<HostText>>,
    http2: Option<Http2Word>,
    #[serde(default)]
    ca: Values<PathBuf>,
    client_certificate: Option<PathBuf>,
    client_key: Option<PathBuf>,
    server_name: Option<Parsed<ServerName>>,
    proxy_protocol: Option<VersionWord>,
    probe: Option<Parsed<ProbeTarget>>,
    probe_interval: Option<Parsed<Time>>,
    connect_timeout: Option<Parsed<Time>>,
    head_timeout: Option<Parsed<Time>>,
}

impl TableText {
    fn checked(self, number: usize) -> Result<OriginTable, String> {
        let name = self.name.unwrap_or_else(|| format!("origin-{number}"));
        if name.is_empty() || name.contains(char::is_control) {
            return Err("`name` must be one line of text".into());
        }
        let servers: Vec<_> = self.servers.0.into_iter().map(|server| server.0).collect();
        if !(1..=MAX_SERVERS).contains(&servers.len()) {
            return Err(format!("`servers` takes 1 to {MAX_SERVERS} URLs"));
        }
        if let Some(at) = (1..servers.len()).find(|&at| servers[..at].contains(&servers[at])) {
            return Err(format!("`servers` names {} twice; leave out one", servers[at]));
        }
        let client_certificate = match (self.client_certificate, self.client_key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err(
                "`client-certificate` and `client-key` need each other; give both, or remove both"
                    .into(),
            ),
        };
        let time = |time: Option<Parsed<Time>>| time.map(|time| time.0.0);
        let interval = time(self.probe_interval);
        if interval.is_some() && self.probe.is_none() {
            return Err("`probe-interval` does nothing without `probe`; add the path".into());
        }
        let interval = interval.unwrap_or(USUAL_PROBE_INTERVAL);
        Ok(OriginTable {
            name,
            hosts: self.hosts.0,
            path: self.path.map(|path| path.0.0).unwrap_or_default(),
            servers,
            send_host: self.send_host.map(|host| host.0.0).unwrap_or_default(),
            http2: self.http2.map(Into::into),
            ca: self.ca.0,
            client_certificate,
            server_name: self.server_name.map(|name| name.0.0),
            proxy_protocol: self.proxy_protocol.map(Into::into),
            probe: self.probe.map(|target| (target.0.0, interval)),
            connect_timeout: time(self.connect_timeout),
            head_timeout: time(self.head_timeout),
        })
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Http2Word {
    Auto,
    Off,
    PriorKnowledge,
}

impl From<Http2Word> for OriginHttp2 {
    fn from(word: Http2Word) -> Self {
        match word {
            Http2Word::Auto => Self::Auto,
            Http2Word::Off => Self::Off,
            Http2Word::PriorKnowledge => Self::PriorKnowledge,
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum VersionWord {
    V1,
    V2,
}

impl From<VersionWord> for HeaderVersion {
    fn from(word: VersionWord) -> Self {
        match word {
            VersionWord::V1 => Self::V1,
            VersionWord::V2 => Self::V2,
        }
    }
}

struct ServerUrl(OriginServer);

impl FromStr for ServerUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        origin(text).map(Self)
    }
}

struct PathPrefix(String);

impl FromStr for PathPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        target(text).filter(|text| !text.contains('?')).map(Self).ok_or_else(|| {
            format!("{text:?} is not a beginning of a path; write a text such as /api/")
        })
    }
}

struct ProbeTarget(String);

impl FromStr for ProbeTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refusal = || format!("{text:?} is not a path; write a path such as /health");
        target(text).map(Self).ok_or_else(refusal)
    }
}

fn target(text: &str) -> Option<String> {
    let is_sound = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    (text.starts_with('/') && text.bytes().all(is_sound)).then(|| text.to_owned())
}

struct HostText(SentHost);

impl FromStr for HostText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "keep" => Ok(Self(SentHost::Kept)),
            "server" => Ok(Self(SentHost::Server)),
            _ if Authority::parse(text.as_bytes()).is_some() => {
                Ok(Self(SentHost::Fixed(text.to_owned())))
            }
            _ => Err(format!("{text:?} is not a host; write keep, server, or a host")),
        }
    }
}

struct ServerName(String);

impl FromStr for ServerName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(ServedHost::Exactly(name)) => Ok(Self(name)),
            _ => Err(format!("{text:?} is not a name of a server; write a name such as a.example")),
        }
    }
}

struct Time(Duration);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = parse_duration(text)?;
        if (MIN_TIME..=MAX_TIME).contains(&time) {
            return Ok(Self(time));
        }
        let (least, most) = (show_duration(MIN_TIME), show_duration(MAX_TIME));
        Err(format!("{text:?} is not from {least} to {most}; correct the time"))
    }
}

#[cfg(test)]
mod tests;
