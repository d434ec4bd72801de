//! The proxy auto-configuration file (PAC), which tells browsers to use this proxy. A forward proxy
//! serves it on its own address, as `/proxy.pac` and under the well-known name `/wpad.dat`.

use crate::upstream::{NoProxy, Scheme};
use foxy_http::{Authority, Method, RequestHead, TargetForm, Version};
use std::net::{IpAddr, SocketAddr};

/// The function that a browser calls for each URL. It calls no function of the browser, because
/// some functions of browsers look names up. The method `file` replaces `TESTS` by tests for hosts
/// without a proxy, and `"PROXY"` by the address of this proxy.
const SCRIPT: &str = r#"function FindProxyForURL(url, host) {
  host = host.toLowerCase().replace(/^\[|\]$|\.$/g, "");
  var parts = /^([a-z]+):\/\/(?:[^\/@]*@)?(?:\[[^\]]*\]|[^:\/]*)(?::(\d+))?/i.exec(url) || [];
  var port = parts[2] ? Number(parts[2]) : /^(https|wss)$/i.test(parts[1]) ? 443 : 80;
  var bytes = /^(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(host);
  var address = bytes
    ? ((+bytes[1] * 256 + +bytes[2]) * 256 + +bytes[3]) * 256 + +bytes[4]
    : -1;
  function within(name) {
    return host === name || host.slice(-name.length - 1) === "." + name;
  }
  function between(first, last) {
    return address >= first && address <= last;
  }
  var direct = /^[^.:]*$/.test(host)
    || /^(::1$|f[cd]..:|fe[89ab].:)/.test(host)
TESTS;
  return direct ? "DIRECT" : "PROXY";
}
"#;

/// Hosts that browsers reach without a proxy, besides plain names and local IPv6 addresses:
/// networks of this machine, of the link, and of private use.
const LOCAL: [&str; 7] = [
    "localhost",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
];

/// The PAC file of a forward proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoConfig {
    tests: String,
}

impl AutoConfig {
    /// Creates a file that sends no requests for hosts of `no_proxy` and for local hosts to the
    /// proxy. IPv6 networks of `no_proxy` are left out.
    pub fn new(no_proxy: &[NoProxy]) -> Self {
        let local = LOCAL.iter().filter_map(|text| text.parse::<NoProxy>().ok());
        let all = local.chain(no_proxy.iter().cloned());
        let tests = all.filter_map(|rule| rule.in_script()).map(|test| format!("    || {test}"));
        Self { tests: tests.collect::<Vec<_>>().join("\n") }
    }

    /// Returns the file for a request to this proxy, or `None` if its `Host` is unusable. The file
    /// names the proxy by this field, because the browser has just reached the proxy there. `over`
    /// is the scheme of the connection.
    pub(crate) fn file(&self, head: &RequestHead, over: Scheme) -> Option<String> {
        let Authority { host, port } = Authority::parse(head.authority()?)?;
        let (kind, port) = match over {
            Scheme::Http => ("PROXY", port.unwrap_or(80)),
            Scheme::Https => ("HTTPS", port.unwrap_or(443)),
        };
        let proxy = format!("\"{kind} {host}:{port}\"");
        Some(SCRIPT.replace("TESTS", &self.tests).replace("\"PROXY\"", &proxy))
    }
}

/// Returns true if the request asks the proxy itself for its PAC file. `own_name` is the name of
/// the proxy in the client's TLS handshake. `reached` returns the address to which the client
/// connected.
pub(crate) fn is_asked(
    head: &RequestHead,
    own_name: Option<&str>,
    reached: impl Fn() -> Option<SocketAddr>,
) -> bool {
    let is_file = |path: &[u8]| matches!(path, b"/proxy.pac" | b"/wpad.dat");
    let is_own = |authority: &[u8]| {
        let Some(Authority { host, port }) = Authority::parse(authority) else { return false };
        match own_name {
            Some(own) => host.eq_ignore_ascii_case(own),
            // A handshake never names an address (RFC 6066 §3).
            None => reached().is_some_and(|reached| {
                let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
                ip == Ok(reached.ip().to_canonical()) && port.unwrap_or(443) == reached.port()
            }),
        }
    };
    let asks = match head.target.form() {
        TargetForm::Origin(path) => is_file(path),
        // In HTTP/2, even a request to the proxy itself has an authority, like a request to an
        // origin. So the authority must be the proxy's own name or address.
        TargetForm::Absolute { authority, path, .. } => {
            head.version == Version::Http2 && is_file(path) && is_own(authority)
        }
        TargetForm::Authority(_) | TargetForm::Asterisk => false,
    };
    asks && matches!(head.method, Method::Get | Method::Head)
}

#[cfg(test)]
#[path = "auto_config_tests.rs"]
mod tests;
