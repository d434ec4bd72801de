//! Access control of the admin server: the token, and protection against requests that web pages
//! make. A web page could point its own host name to this machine (DNS rebinding), so `Host` is
//! checked too.

use crate::failure::Failure;
use crate::secret_file::{self, SecretError};
use foxy_base::{HostName, HostPattern};
use foxy_proxy::core::token::{MIN_TOKEN_BYTES, Token};
use hyper::StatusCode;
use std::path::Path;

/// Header fields that say which host a request is for, and whether a web page made it.
#[derive(Clone, Debug, Default)]
pub struct Claims<'a> {
    pub hosts: Vec<&'a [u8]>,
    pub origins: Vec<&'a [u8]>,
    /// All values of `Sec-Fetch-Site`.
    pub fetch_sites: Vec<&'a [u8]>,
    /// Whether the request has the field `Foxy-Dashboard`. The page of another server cannot add
    /// this field, because a browser first asks this server, which refuses.
    pub is_marked: bool,
    /// Whether the request only reads: its method is GET or HEAD.
    pub is_read: bool,
}

/// Reason why the admin server refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessRefusal {
    RepeatedHost,
    /// The `Host` field is not an address, not `localhost`, and not in `admin-hosts`.
    Host,
    WebPage,
}

impl AccessRefusal {
    pub const fn status(self) -> StatusCode {
        match self {
            Self::RepeatedHost => StatusCode::BAD_REQUEST,
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::WebPage => StatusCode::FORBIDDEN,
        }
    }

    pub const fn text(self) -> &'static str {
        match self {
            Self::RepeatedHost => "the request has two Host fields; send only one (admin-host)",
            Self::Host => {
                "the Host is neither an address nor localhost; add its name to `admin-hosts` \
                 (admin-host)"
            }
            Self::WebPage => "the admin server refuses requests from web pages (admin-web-page)",
        }
    }
}

/// Decides whether the admin server accepts a request. Accepts a request without a `Host` field,
/// because no browser sends such a request.
pub fn judge(claims: &Claims<'_>, hosts: &[HostPattern]) -> Result<(), AccessRefusal> {
    if claims.hosts.len() > 1 {
        return Err(AccessRefusal::RepeatedHost);
    }
    if claims.hosts.iter().any(|host| !is_accepted(host, hosts)) {
        return Err(AccessRefusal::Host);
    }
    let is_own = |site: &&[u8]| matches!(*site, b"none" | b"same-origin");
    let is_from_dashboard = |origin: &&[u8]| is_from_dashboard(origin, claims);
    let are_own = claims.fetch_sites.iter().all(is_own);
    let is_permitted = are_own && claims.origins.iter().all(is_from_dashboard);
    if is_permitted { Ok(()) } else { Err(AccessRefusal::WebPage) }
}

/// Returns whether the dashboard sent a request with this `Origin`: the origin is this server under
/// the name in `Host`. A request that may change something must also have the dashboard's own
/// field.
fn is_from_dashboard(origin: &[u8], claims: &Claims<'_>) -> bool {
    let bare = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    (claims.is_marked || claims.is_read) && bare.is_some() && bare == claims.hosts.first().copied()
}

/// Returns whether `host` is an address, is `localhost` or matches a pattern in `hosts`. `host` may
/// include a port.
fn is_accepted(host: &[u8], hosts: &[HostPattern]) -> bool {
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

/// Reads the token that clients need for admin requests and for the method PURGE.
pub fn read_token(path: &Path) -> Result<Token, Failure> {
    Ok(Token::new(&read_token_word(path)?).expect("`read_token_word` has checked it"))
}

/// Reads the token as text, for foxy commands that send it to the admin server.
pub fn read_token_word(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    let unusable =
        |what: &str| Failure::Unusable(format!("the token file {name} (admin-token-file) {what}"));
    let right = format!(
        "write one word of at least {MIN_TOKEN_BYTES} characters to the file, for example with \
         `openssl rand -hex 32`"
    );
    let content = secret_file::read(path).map_err(|error| match error {
        SecretError::Unreadable(_) => unusable(&format!("{error}; {right}")),
        _ => unusable(&error.to_string()),
    })?;
    let word = String::from_utf8_lossy(&content).trim().to_owned();
    Token::new(&word)
        .map(|_| word)
        .ok_or_else(|| unusable(&format!("contains no valid token; {right}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn judged(host: &str, hosts: &[&str]) -> Result<(), AccessRefusal> {
        let hosts: Vec<_> = hosts.iter().map(|host| host.parse().expect("a host")).collect();
        judge(&Claims { hosts: vec![host.as_bytes()], ..Claims::default() }, &hosts)
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
    fn a_name_that_is_not_listed_is_refused() {
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
            assert_eq!(judged(host, &["foxy.test"]), Err(AccessRefusal::Host), "{host}");
        }
    }

    #[test]
    fn a_web_page_is_refused_whatever_host_it_asks() {
        let sent = |origins: &[&'static str], sites: &[&'static str]| {
            let claims = Claims {
                hosts: vec![b"127.0.0.1"],
                origins: origins.iter().map(|origin| origin.as_bytes()).collect(),
                fetch_sites: sites.iter().map(|site| site.as_bytes()).collect(),
                is_marked: true,
                is_read: true,
            };
            judge(&claims, &[])
        };
        let own = "http://127.0.0.1";
        for sites in [&[][..], &["none"], &["same-origin"]] {
            assert_eq!(sent(&[], sites), Ok(()), "{sites:?}");
            assert_eq!(sent(&[own, own], sites), Ok(()), "{sites:?}");
            for origins in [&["null"][..], &[own, "http://evil.test"], &["null", own]] {
                assert_eq!(sent(origins, sites), Err(AccessRefusal::WebPage), "{origins:?}");
            }
        }
        for site in ["cross-site", "same-site", "", "Cross-Site"] {
            for sites in [&[site][..], &["none", site], &[site, "same-origin"]] {
                assert_eq!(sent(&[], sites), Err(AccessRefusal::WebPage), "{sites:?}");
            }
        }
    }

    #[test]
    fn a_token_file_holds_one_long_word_that_is_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let missing = read_token(&path).expect_err("no file").to_string();
        assert!(missing.contains("token (admin-token-file) cannot be read"), "{missing}");
        std::fs::write(&path, "0123456789abcdef\n").expect("written");
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("changed");
        let public = read_token(&path).expect_err("every user may read it").to_string();
        assert!(public.contains("(admin-token-file) may be read by every user"), "{public}");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("changed");
        assert!(read_token(&path).is_ok_and(|token| token.is(b"0123456789abcdef")));
        std::fs::write(&path, "too short\n").expect("written");
        assert!(
            read_token(&path)
                .expect_err("too short")
                .to_string()
                .contains("at least 16 characters")
        );
    }
}
