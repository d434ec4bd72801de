//! The address, the protocol and the request text that all clients of a load run use.

use crate::load::options::{LoadOptions, Mode, Protocol};
use crate::wire::REQUEST_ID;
use foxy_base::WallTime;
use foxy_http::Method;
use foxy_workload::polymix::requests::Manner;
use foxy_workload::{Content, Request};
use rustls::ClientConfig;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

pub const POSTED: &str = "name=value";
pub const POSTED_TYPE: &str = "application/x-www-form-urlencoded";

#[derive(Clone, Debug)]
pub struct ClientTarget {
    pub target: SocketAddr,
    pub protocol: Protocol,
    pub time_limit: Duration,
    pub tls: Option<Arc<ClientConfig>>,
    forward: bool,
    authorities: Arc<[String]>,
    by: By,
}

#[derive(Clone, Copy, Debug)]
enum By {
    Server,
    Object,
}

impl ClientTarget {
    /// Computes `host:port` of all servers, as URLs and `Host` fields name them. Server `n` uses
    /// the first server's port plus `n`. Behind a reverse proxy, all servers have the same name.
    pub fn new(options: &LoadOptions) -> Self {
        let (forward, first) = match &options.mode {
            Mode::Forward { origin } => (true, origin),
            Mode::Reverse { host } => (false, host),
        };
        let (servers, hosts) =
            (options.workload.model.servers(), options.hosts.filter(|_| forward));
        let (by, authorities) = match hosts {
            Some(hosts) if servers == 1 => (By::Object, hosts),
            _ => (By::Server, servers),
        };
        let at = |number: u32| -> Option<String> {
            let (host, port) = first.rsplit_once(':')?;
            let port = port.parse::<u32>().ok()? + number % servers.max(1);
            let below = hosts.map(|hosts| format!("h{}.", number % hosts + 1)).unwrap_or_default();
            Some(format!("{below}{host}:{port}"))
        };
        let name =
            |number| if forward { at(number) } else { None }.unwrap_or_else(|| first.clone());
        Self {
            target: options.target,
            protocol: options.protocol,
            time_limit: options.time_limit,
            tls: options
                .tls
                .as_ref()
                .map(|trust| trust.client(options.protocol == Protocol::Http2)),
            forward,
            authorities: (0..authorities).map(name).collect(),
            by,
        }
    }

    pub const fn tunnels(&self) -> bool {
        self.forward && self.tls.is_some()
    }

    pub const fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    pub fn authority(&self, request: &Request) -> &str {
        let number = match (self.by, request.content) {
            (By::Object, Content::Object(object, _)) => object.id,
            (By::Object, Content::Document(_)) | (By::Server, _) => request.server.into(),
        };
        let place = number % self.authorities.len() as u64;
        &self.authorities[usize::try_from(place).unwrap_or_default()]
    }

    pub fn write(
        &self,
        request: &Request,
        number: u64,
        now: WallTime,
        last: bool,
        text: &mut String,
    ) {
        text.clear();
        let (method, content, version) =
            (method(request.manner), request.content, self.protocol.version());
        let authority = self.authority(request);
        let written = if self.forward && !self.tunnels() {
            write!(text, "{method} http://{authority}{content} {version}\r\nHost: {authority}\r\n")
        } else {
            write!(text, "{method} {content} {version}\r\nHost: {authority}\r\n")
        };
        written.expect("a String takes all that is written");
        write!(text, "{REQUEST_ID}: {number}\r\n").expect("a String takes all that is written");
        if let Some(line) = self.protocol.connection_line(last) {
            text.push_str(line);
        }
        for (name, value) in fields(request, now) {
            write!(text, "{name}: {value}\r\n").expect("a String takes all that is written");
        }
        if request.manner == Manner::Post {
            write!(text, "Content-Length: {}\r\n\r\n{POSTED}", POSTED.len())
                .expect("a String takes all that is written");
        } else {
            text.push_str("\r\n");
        }
    }
}

pub const fn method(manner: Manner) -> Method {
    match manner {
        Manner::Post => Method::Post,
        Manner::Head => Method::Head,
        _ => Method::Get,
    }
}

pub fn fields(request: &Request, now: WallTime) -> impl Iterator<Item = (&'static str, String)> {
    let field = |name, value: &str| Some((name, value.to_owned()));
    let since = |before: u64| {
        let Content::Document(document) = request.content else { return None };
        let life = document.nature().life;
        let date = life.changed(life.version(now.seconds()).saturating_sub(before));
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(date));
        Some(("If-Modified-Since", date))
    };
    let fields = match request.manner {
        Manner::Basic | Manner::Head => [None, None],
        Manner::Reload => [field("Cache-Control", "no-cache"), field("Pragma", "no-cache")],
        Manner::Post => [field("Content-Type", POSTED_TYPE), None],
        Manner::SinceBefore => [since(1), None],
        Manner::SinceThen => [since(0), None],
    };
    fields.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_workload::{Object, Workload};

    fn names(mode: Mode, workload: &str, hosts: Option<u32>) -> Vec<String> {
        let workload = Workload::find(workload).expect("one of ours");
        let target = "127.0.0.1:1".parse().expect("an address");
        let wire =
            ClientTarget::new(&LoadOptions { hosts, ..LoadOptions::new(target, mode, workload) });
        let request = |(number, server)| Request {
            content: Content::Object(Object { id: number, size: 1, version: 1 }, Duration::ZERO),
            server,
            manner: Manner::Basic,
            repeat: false,
        };
        let asked = [(0, 0), (1, 0), (2, 1), (0, 0)].map(request);
        asked.iter().map(|request| wire.authority(request).to_owned()).collect()
    }

    #[test]
    fn objects_are_spread_over_the_names_of_an_origin_each_always_under_the_same() {
        let forward = || Mode::Forward { origin: "o.test:80".into() };
        assert_eq!(names(forward(), "zipf", None), ["o.test:80"; 4]);
        assert_eq!(names(forward(), "zipf", Some(1)), ["h1.o.test:80"; 4]);
        let two = ["h1.o.test:80", "h2.o.test:80", "h1.o.test:80", "h1.o.test:80"];
        assert_eq!(names(forward(), "zipf", Some(2)), two);
        let servers = ["h1.o.test:80", "h1.o.test:80", "h2.o.test:81", "h1.o.test:80"];
        assert_eq!(names(forward(), "table3", Some(3)), servers, "a server has one name");
        let reverse = Mode::Reverse { host: "o.test:80".into() };
        assert_eq!(names(reverse, "zipf", Some(2)), ["o.test:80"; 4]);
    }
}
