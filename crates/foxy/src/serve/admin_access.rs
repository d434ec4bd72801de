//! Who may ask the admin server anything. A web page may not: neither as itself, nor under a name
//! of its own that it has turned to this machine (DNS rebinding). What then only a token or this
//! machine may do is in `admin`.

use foxy_proxy::intercept::{HostName, HostPattern};

/// The fields of a request that say from where it comes and for whom it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claims<'a> {
    /// Host.
    pub host: Option<&'a [u8]>,
    /// Whether there is a second Host.
    pub repeated: bool,
    /// Origin.
    pub origin: Option<&'a [u8]>,
    /// Sec-Fetch-Site.
    pub site: Option<&'a [u8]>,
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has two Hosts.
    RepeatedHost,
    /// Its Host is no address, not `localhost` and not in `admin-hosts`.
    Host,
    /// A web page made its reader's browser send it.
    WebPage,
}

impl Refused {
    /// The status, and what is said.
    pub const fn answer(self) -> (&'static str, &'static str) {
        match self {
            Self::RepeatedHost => ("400 Bad Request", "a request has one Host (admin-host)"),
            Self::Host => (
                "421 Misdirected Request",
                "the Host is neither an address nor localhost; add its name to `admin-hosts` (admin-host)",
            ),
            Self::WebPage => {
                ("403 Forbidden", "requests of web pages are refused here (admin-web-page)")
            }
        }
    }
}

/// Judges a request. One without Host comes from no browser.
pub fn judge(claims: Claims<'_>, hosts: &[HostPattern]) -> Result<(), Refused> {
    if claims.repeated {
        return Err(Refused::RepeatedHost);
    }
    if claims.host.is_some_and(|host| !is_ours(host, hosts)) {
        return Err(Refused::Host);
    }
    let own = claims.site.is_none_or(|site| matches!(site, b"none" | b"same-origin"));
    if claims.origin.is_some() || !own { Err(Refused::WebPage) } else { Ok(()) }
}

/// Whether a Host, with or without a port, is an address, `localhost`, or in the list.
fn is_ours(host: &[u8], hosts: &[HostPattern]) -> bool {
    let Ok(text) = std::str::from_utf8(host) else { return false };
    let bare = match text.rsplit_once(':') {
        Some((bare, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => bare,
        _ => text,
    };
    match HostName::parse(bare) {
        Some(HostName::Address(_)) => true,
        Some(HostName::Name(name)) => {
            name.eq_ignore_ascii_case("localhost")
                || hosts.iter().any(|pattern| pattern.matches(HostName::Name(name)))
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(host: &str, hosts: &[&str]) -> Result<(), Refused> {
        let hosts: Vec<_> = hosts.iter().map(|host| host.parse().expect("a host")).collect();
        judge(Claims { host: Some(host.as_bytes()), ..Claims::default() }, &hosts)
    }

    #[test]
    fn addresses_localhost_and_the_listed_names_are_answered() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:3129",
            "[::1]",
            "[::1]:3129",
            "192.0.2.1:80",
            "localhost",
            "LOCALHOST:3129",
        ] {
            assert_eq!(judged(host, &[]), Ok(()), "{host}");
        }
        for host in ["localhost.", "localhost.:3129", "foxy.test", "Foxy.Test.:3129"] {
            assert_eq!(judged(host, &["foxy.test"]), Ok(()), "{host}");
        }
    }

    #[test]
    fn a_name_that_was_turned_to_this_machine_is_not() {
        for host in [
            "evil.test:3129",
            "127.0.0.1.evil.test",
            "127.0.0.1.",
            "localhost.evil.test",
            "evillocalhost",
            "foxy.test.evil.test",
            "2130706433",
            "0x7f.0.0.1",
            "127.1",
            "::1",
            "[::1",
            "[::1].evil.test",
            "user@127.0.0.1",
            "127.0.0.1:80:80",
            "127.0.0.1:x",
            "",
        ] {
            assert_eq!(judged(host, &["foxy.test"]), Err(Refused::Host), "{host}");
        }
    }

    #[test]
    fn a_web_page_is_refused_whatever_host_it_asks() {
        let sent = |origin: Option<&'static str>, site: Option<&'static str>| {
            let host = Some(&b"127.0.0.1"[..]);
            let claims = Claims {
                host,
                origin: origin.map(str::as_bytes),
                site: site.map(str::as_bytes),
                repeated: false,
            };
            judge(claims, &[])
        };
        for site in [None, Some("none"), Some("same-origin")] {
            assert_eq!(sent(None, site), Ok(()), "{site:?}");
            assert_eq!(sent(Some("null"), site), Err(Refused::WebPage), "{site:?}");
        }
        for site in ["cross-site", "same-site", "", "Cross-Site"] {
            assert_eq!(sent(None, Some(site)), Err(Refused::WebPage), "{site}");
        }
    }
}
