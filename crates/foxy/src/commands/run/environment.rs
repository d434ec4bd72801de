//! Environment variables that make programs use a proxy and trust its certificate authority. The
//! caller passes a function that looks up inherited variables, so tests need no real environment.

use super::trust::TrustFiles;
use std::ffi::{OsStr, OsString};

/// Variables that contain the URL of the proxy.
const PROXY: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "CARGO_HTTP_PROXY",
    "PIP_PROXY",
    "npm_config_proxy",
    "npm_config_https_proxy",
    "YARN_HTTP_PROXY",
    "YARN_HTTPS_PROXY",
];

/// Variables that contain the path of a file with all trusted certificate authorities.
const BUNDLE: &[&str] = &[
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    // npm's setting `cafile` replaces the authorities of Node.js, and a user's `.npmrc` may set it.
    // This variable overrides that file.
    "npm_config_cafile",
    "NPM_CONFIG_CAFILE",
    "YARN_HTTPS_CA_FILE_PATH",
    "BUNDLE_SSL_CA_CERT",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
    "HEX_CACERTS_PATH",
    "HTTPLIB2_CA_CERTS",
    "NIX_SSL_CERT_FILE",
    "PERL_LWP_SSL_CA_FILE",
];

/// Variables that list the hosts which programs reach without a proxy. foxy adds this machine to
/// the list, because foxy refuses to forward requests to this machine.
const PAST: &[&str] = &["no_proxy", "NO_PROXY"];
const THIS_MACHINE: &str = "localhost,127.0.0.1,::1";

#[derive(Clone, Copy)]
pub struct ProxyAddress<'a> {
    pub host: &'a str,
    pub port: u16,
}

/// Returns the variables to set. `trust` is `Some` if the command must trust an additional
/// authority, which the proxy uses to intercept TLS.
pub fn variables(
    proxy: ProxyAddress<'_>,
    trust: Option<&TrustFiles>,
    inherited: impl Fn(&str) -> Option<OsString>,
) -> Vec<(&'static str, OsString)> {
    let ProxyAddress { host, port } = proxy;
    let url = OsString::from(format!("http://{host}:{port}"));
    let mut set: Vec<_> = PROXY.iter().map(|&name| (name, url.clone())).collect();
    let earlier = PAST.iter().find_map(|name| inherited(name).filter(|value| !value.is_empty()));
    let past = joined(earlier, ",", THIS_MACHINE.as_ref());
    set.extend(PAST.iter().map(|&name| (name, past.clone())));
    set.push(("NODE_USE_ENV_PROXY", "1".into()));
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut java: OsString = ["http", "https"]
        .map(|scheme| format!("-D{scheme}.proxyHost={bare} -D{scheme}.proxyPort={port}"))
        .join(" ")
        .into();
    if let Some(trust) = trust {
        set.extend(BUNDLE.iter().map(|&name| (name, trust.bundle.clone().into())));
        set.push(("WGETRC", trust.wget.clone().into()));
        set.push(("APT_CONFIG", trust.apt.clone().into()));
        java.push(" -Djavax.net.ssl.trustStoreType=JKS -Djavax.net.ssl.trustStore=");
        java.push(&trust.java);
    }
    // The new options come last: if an option appears twice, Java uses the last value.
    set.push(("JAVA_TOOL_OPTIONS", joined(inherited("JAVA_TOOL_OPTIONS"), " ", &java)));
    set
}

fn joined(earlier: Option<OsString>, separator: &str, later: &OsStr) -> OsString {
    match earlier {
        Some(mut text) if !text.is_empty() => {
            text.push(separator);
            text.push(later);
            text
        }
        _ => later.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(set: &[(&'static str, OsString)], name: &str) -> String {
        let found: Vec<_> = set.iter().filter(|(key, _)| *key == name).collect();
        assert_eq!(found.len(), 1, "{name}");
        found[0].1.to_string_lossy().into_owned()
    }

    #[test]
    fn variables_name_the_proxy_and_keep_inherited_values() {
        let inherited = |name: &str| match name {
            "NO_PROXY" => Some("inside.test".into()),
            "JAVA_TOOL_OPTIONS" => Some("-Xmx1g".into()),
            _ => None,
        };
        let set = variables(ProxyAddress { host: "127.0.0.1", port: 4 }, None, inherited);
        assert_eq!(value(&set, "https_proxy"), "http://127.0.0.1:4");
        assert_eq!(value(&set, "NO_PROXY"), "inside.test,localhost,127.0.0.1,::1");
        assert_eq!(value(&set, "no_proxy"), value(&set, "NO_PROXY"));
        let java = value(&set, "JAVA_TOOL_OPTIONS");
        assert!(
            java.starts_with("-Xmx1g -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=4 "),
            "{java}"
        );
        assert!(
            !set.iter().any(|(name, _)| *name == "SSL_CERT_FILE"),
            "nothing to trust, nothing set"
        );
    }

    #[test]
    fn every_program_gets_the_authorities_in_its_own_way() {
        let trust = TrustFiles::in_folder("/t".as_ref());
        let set = variables(ProxyAddress { host: "[::1]", port: 4 }, Some(&trust), |_| None);
        for name in [
            "SSL_CERT_FILE",
            "PIP_CERT",
            "NODE_EXTRA_CA_CERTS",
            "CARGO_HTTP_CAINFO",
            "GIT_SSL_CAINFO",
        ] {
            assert_eq!(value(&set, name), "/t/bundle.pem");
        }
        assert_eq!(value(&set, "APT_CONFIG"), "/t/apt.conf");
        let java = value(&set, "JAVA_TOOL_OPTIONS");
        assert!(
            java.contains("-Dhttps.proxyHost=::1 ") && java.ends_with("=/t/trust.jks"),
            "{java}"
        );
        let mut names: Vec<_> = set.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), set.len());
    }
}
