//! Converts Squid's listeners: `http_port`, `https_port` and `proxy_protocol_access`.

use super::super::draft::{ImportDraft, Original};
use super::super::report::ImportReason;
use super::access::AccessLine;
use super::acl::SquidAcls;
use super::lines::SquidLine;
use super::{SquidImport, access_line, unreadable};
use toml::Value;

type Converted = Result<(), ImportReason>;

/// Options of Squid's listeners that foxy has only for all listeners together, and the lines about
/// PROXY protocol headers.
#[derive(Debug, Default)]
pub struct SquidListeners {
    /// For each `https_port`, the file with the authority of its clients.
    authorities: Vec<(Option<String>, Original)>,
    /// Files with lists of revoked certificates.
    revoked: Vec<(String, Original)>,
    /// Listeners at which each connection begins with a PROXY protocol header.
    with_header: Vec<Original>,
    header_access: Vec<AccessLine>,
}

/// Options of Squid's listeners that need no conversion, or that other code converts.
const KNOWN: [&str; 28] = [
    "accel",
    "act-as-origin",
    "allow-direct",
    "cert",
    "cipher",
    "clientca",
    "connection-auth",
    "crlfile",
    "defaultsite",
    "disable-pmtu-discovery",
    "intercept",
    "key",
    "name",
    "no-vhost",
    "options",
    "protocol",
    "require-proxy-header",
    "ssl-bump",
    "tcpkeepalive",
    "tls-cert",
    "tls-dh",
    "tls-key",
    "tls-min-version",
    "tproxy",
    "transparent",
    "vhost",
    "vport",
    "worker-queues",
];

/// The usual port of foxy's admin server. Squid's manual uses this port for TPROXY and REDIRECT.
const ADMIN_PORT: &str = ":3129";
const NEW_ADMIN: &str = "127.0.0.1:3139";

pub fn http_port(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let text = line.argument(0).ok_or_else(|| unreadable(&line.original))?;
    if !transparent_port(import, line, text)? {
        import.draft.push("listen", address(text), &line.original);
    }
    common_options(import, line);
    if line.arguments().iter().any(|word| word == "ssl-bump") {
        let text = "foxy intercepts HTTPS for listed hosts; see `intercept-hosts`, `foxy ca init`";
        return Err(ImportReason::Differs(text.into()));
    }
    Ok(())
}

/// Converts a port whose clients do not know that they use a proxy. Returns false for any other
/// port. With TPROXY, Squid connects to origins with the addresses of clients.
fn transparent_port(
    import: &mut SquidImport<'_>,
    line: &SquidLine,
    text: &str,
) -> Result<bool, ImportReason> {
    let mode = line.arguments().iter().skip(1).find_map(|word| match word.as_str() {
        "intercept" | "transparent" => Some("redirect"),
        "tproxy" => Some("tproxy"),
        _ => None,
    });
    let Some(mode) = mode else { return Ok(false) };
    let earlier = import.draft.value("transparent-mode").and_then(Value::as_str);
    if earlier.is_some_and(|earlier| earlier != mode) {
        return Err(ImportReason::Missing(
            "foxy has one `transparent-mode` for all listeners".into(),
        ));
    }
    if address(text).ends_with(ADMIN_PORT) {
        import.draft.set("admin", NEW_ADMIN, &line.original);
        let text = format!("foxy's admin server has this port; it moves to {NEW_ADMIN}");
        import.draft.leave(&line.original, ImportReason::Differs(text));
    }
    import.draft.push("listen-transparent", address(text), &line.original);
    import.draft.set("transparent-mode", mode, &line.original);
    if mode == "tproxy" {
        import.draft.set("origin-source", "client", &line.original);
    }
    Ok(true)
}

pub fn https_port(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    let text = line.argument(0).ok_or_else(|| unreadable(&line.original))?;
    if transparent_port(import, line, text)? {
        let text = "foxy intercepts HTTPS for listed hosts; see `intercept-hosts`, `foxy ca init`";
        return Err(ImportReason::Differs(text.into()));
    }
    let certificate = option(line, &["cert", "tls-cert"]);
    let Some(certificate) = certificate else {
        let text = "`listen-tls` needs a certificate".to_owned();
        return Err(ImportReason::Missing(text));
    };
    let key = option(line, &["key", "tls-key"]).unwrap_or(certificate);
    import.draft.push("listen-tls", address(text), &line.original);
    import.draft.push("tls-certificate", certificate, &line.original);
    import.draft.push("tls-key", key, &line.original);
    let authority = option(line, &["clientca"]).map(ToOwned::to_owned);
    import.listeners.authorities.push((authority, line.original.clone()));
    if let Some(file) = option(line, &["crlfile"]) {
        import.listeners.revoked.push((file.to_owned(), line.original.clone()));
    }
    common_options(import, line);
    Ok(())
}

/// Converts `proxy_protocol_access allow|deny ACL…`.
pub fn proxy_protocol_access(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    import.listeners.header_access.push(access_line(line)?);
    Ok(())
}

fn common_options(import: &mut SquidImport<'_>, line: &SquidLine) {
    let options = line.arguments().iter().skip(1);
    let names = options.map(|word| word.split_once('=').map_or(word.as_str(), |(name, _)| name));
    let unknown: Vec<&str> = names.filter(|name| !KNOWN.contains(name)).collect();
    if !unknown.is_empty() {
        let text = format!("foxy has no option {}", unknown.join(", "));
        import.draft.leave(&line.original, ImportReason::Differs(text));
    }
    if line.arguments().iter().any(|word| word == "require-proxy-header") {
        import.listeners.with_header.push(line.original.clone());
    }
}

impl SquidListeners {
    pub fn finish(&self, draft: &mut ImportDraft, acls: &SquidAcls) {
        self.client_authority(draft);
        for line in self.header_access.iter().filter(|line| line.allows()) {
            let networks = match line.literals() {
                [(false, name)] => acls.clients(name),
                _ => None,
            };
            for network in networks.into_iter().flatten() {
                draft.push("proxy-protocol-from", network, line.original());
            }
        }
        for original in &self.with_header {
            let text = "foxy also serves clients without a PROXY protocol header here, unless \
                        `proxy-protocol-from` lists their network";
            draft.leave(original, ImportReason::Opens(text.into()));
        }
    }

    /// Sets `client-ca` to the first authority that an `https_port` names. foxy has one `client-ca`
    /// for all its TLS listeners. So the report lists each `https_port` with another authority or
    /// without an authority.
    fn client_authority(&self, draft: &mut ImportDraft) {
        let mut named = self.authorities.iter().filter_map(|(file, _)| file.as_ref());
        let Some(first) = named.next() else { return };
        for (file, original) in &self.revoked {
            draft.revoked_certificates(file, original);
        }
        for (file, original) in &self.authorities {
            if file.as_ref() == Some(first) {
                draft.push("client-ca", first.as_str(), original);
                draft.set("client-certificates", "required", original);
            } else {
                let text = format!("foxy asks for a certificate of {first} at all TLS listeners");
                draft.leave(original, ImportReason::Differs(text));
            }
        }
    }
}

/// Returns the address of an `http_port` or `https_port` in foxy's form: a port alone gets a colon.
fn address(text: &str) -> String {
    let port_alone = text.bytes().all(|byte| byte.is_ascii_digit());
    if port_alone { format!(":{text}") } else { text.to_owned() }
}

/// Returns the value of the first option with one of these names, such as `cert=PATH`.
fn option<'l>(line: &'l SquidLine, names: &[&str]) -> Option<&'l str> {
    let mut options = line.arguments().iter().filter_map(|word| word.split_once('='));
    options.find(|(name, _)| names.contains(name)).map(|(_, value)| value)
}
